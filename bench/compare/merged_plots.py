# SPDX-License-Identifier: MIT OR Apache-2.0
"""Plots of several machines: the means side by side, every workload on every machine, time and memory of each machine."""

import html
from dataclasses import replace
from itertools import product

import plotly.express as px
from merged import Merged
from metrics import CPU, PEAK, SETTLED, TIME, Metric
from plots import Figure, Plot, drawn, row, side_by_side, heat, time_and_memory

SHOWN = (TIME, CPU, PEAK, SETTLED)


def means(data: Merged) -> Plot:
    choices = {}
    for metric, section in product(SHOWN, data.sections):
        rows = [
            row(e, f"<b>{a}</b>, {html.escape(m.label)}<br>{e}<br>{e.count} workloads", allocator=a,
                 machine=html.escape(m.label).replace(", ", ",<br>"))
            for a in data.allocators for m in data.machines if (e := m.shared.mean(metric, section, a))
        ]
        if figure := drawn(px.scatter, rows, data.allocators, "color", "symbol", x="machine", log_y=True):
            figure.update_xaxes(title="", showgrid=False).update_yaxes(title=f"{metric.title} relative to {data.reference}")
            choices[f"{metric.title}, {section}"] = side_by_side(figure, "v").update_layout(height=480)
    return Plot(
        "means",
        "The machines side by side",
        f"Geometric means relative to {data.reference} on the same machine, over those workloads that all machines have measured; lower "
        "is better. The bars are 95 % intervals. An allocator that a machine does not have has no symbol there.",
        choices,
        "quantity and workloads",
    )


def heat_map(data: Merged) -> Plot:
    machines = {m.label: m for m in data.machines}

    def figure(metric: Metric, rows: list[str]) -> Figure:
        def cell(workload: str, label: str) -> tuple[float | None, str, str]:
            found = machines[label].data.against_other(metric, workload)
            told = f"{found.ratio} of {found.best}'s" if found else "no number"
            return found.ratio.middle if found else None, "", f"<b>{workload}</b>, {html.escape(label)}<br>{html.escape(told)}"

        return heat(rows, list(machines), cell)

    known = {m: [w for w in data.workloads if any(one.data.against_other(m, w) for one in data.machines)] for m in SHOWN}
    return Plot(
        "heat",
        "Every workload on every machine",
        "The number in a cell is Terrace's ratio to the best other allocator on that machine; below 1, in blue, Terrace is better. The "
        "colours end at a fourth and four times. Point at a cell for the interval and who the best other is; an empty cell was not "
        "measured.",
        {metric.title: figure(metric, rows) for metric, rows in known.items() if rows},
        "quantity",
    )


def each_machine(data: Merged) -> Plot:
    plots = {m.label: time_and_memory(m.shared, data.allocators) for m in data.machines}
    choices = {f"{label}: {title}": figure for label, plot in plots.items() for title, figure in plot.choices.items()}
    return replace(next(iter(plots.values())), choices=choices, choose="machine, memory and workloads")


def all_plots(data: Merged) -> list[Plot]:
    return [plot for plot in (means(data), heat_map(data), each_machine(data)) if plot.choices]
