# SPDX-License-Identifier: MIT OR Apache-2.0
"""All plots of the page."""

from __future__ import annotations

from look import Look, Plot
from plots_of_ratios import heat_map, ratios, time_and_memory
from plots_of_values import bars, latency, throughput
from summary import Comparison


def all_plots(data: Comparison) -> list[Plot]:
    """In the page's order; one that has nothing to show is left out."""
    look = Look(data.allocators)
    plots = [
        time_and_memory(data, look),
        heat_map(data),
        ratios(data, look),
        bars(data, look),
        latency(data, look),
        throughput(data, look),
    ]
    return [plot for plot in plots if plot.choices]
