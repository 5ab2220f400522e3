# SPDX-License-Identifier: MIT OR Apache-2.0
"""Plots of several machines: the means side by side, every workload on every machine, time and memory of each machine."""

from __future__ import annotations

import html
import math
from dataclasses import replace

from look import Choice, Json, Look, Plot, axis, errors, layout, ticks
from merged import Machine, Merged
from metrics import CPU, PEAK, SETTLED, TIME, Metric
from plots_of_ratios import SHADES, time_and_memory

SHOWN = (TIME, CPU, PEAK, SETTLED)


def means(data: Merged, look: Look) -> Plot:
    choices = []
    for metric in SHOWN:
        for section in data.sections:
            traces = [t for a in data.allocators if (t := _line(data, look, metric, section, a))]
            if traces:
                choices.append(Choice(f"{metric.title}, {section}", traces, _shape(data, metric, traces)))
    return Plot(
        "means",
        "The machines side by side",
        f"Geometric means relative to {data.reference} on the same machine, over those workloads that all machines have measured; lower "
        "is better. The bars are 95 % intervals. An allocator that a machine does not have has no symbol there.",
        choices,
        "quantity and workloads",
    )


def _line(data: Merged, look: Look, metric: Metric, section: str, allocator: str) -> Json | None:
    """Of an allocator; beside the others, so that no interval hides another."""
    found = [(i, e) for i, m in enumerate(data.machines) if (e := m.shared.mean(metric, section, allocator))]
    if not found:
        return None
    offset = 0.7 * ((data.allocators.index(allocator) + 0.5) / len(data.allocators) - 0.5)
    present = [e for _, e in found]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": allocator,
        "x": [i + offset for i, _ in found],
        "y": [e.middle for e in present],
        "error_y": errors(present),
        "marker": look.marker(allocator),
        "customdata": [f"<b>{allocator}</b>, {html.escape(data.machines[i].label)}<br>{e}<br>{e.count} workloads" for i, e in found],
        "hovertemplate": "%{customdata}<extra></extra>",
    }


def _shape(data: Merged, metric: Metric, traces: list[Json]) -> Json:
    values = [v for t in traces for v in t["y"]]
    names = [html.escape(m.label).replace(", ", ",<br>") for m in data.machines]
    return layout(
        480,
        xaxis=axis("", tickvals=list(range(len(names))), ticktext=names, range=[-0.5, len(names) - 0.5], showgrid=False),
        yaxis=axis(f"{metric.title} relative to {data.reference}", **ticks(min(values), max(values))),
    )


def heat_map(data: Merged) -> Plot:
    choices = []
    for metric in SHOWN:
        rows = [w for w in data.workloads if any(m.data.against_other(metric, w) for m in data.machines)]
        if rows:
            choices.append(_heat(data, metric, rows))
    return Plot(
        "heat",
        "Every workload on every machine",
        "The number in a cell is Terrace's ratio to the best other allocator on that machine; below 1, in blue, Terrace is better. The "
        "colours end at a fourth and four times. Point at a cell for the interval and who the best other is; an empty cell was not "
        "measured.",
        choices,
        "quantity",
    )


def _heat(data: Merged, metric: Metric, rows: list[str]) -> Choice:
    shades, texts, hovers = [], [], []
    for workload in rows:
        found = [(m, m.data.against_other(metric, workload)) for m in data.machines]
        shades.append([math.log2(min(max(x.ratio.middle, 0.25), 4)) if x else None for _, x in found])
        texts.append([f"{x.ratio.middle:.2f}" if x else "" for _, x in found])
        hovers.append([_hover(m, workload, f"{x.ratio} of {x.best}'s" if x else "no number") for m, x in found])
    trace = SHADES | {
        "x": [m.label for m in data.machines],
        "y": rows,
        "z": shades,
        "text": texts,
        "customdata": hovers,
    }
    shape = layout(
        130 + 24 * len(rows),
        xaxis=axis("", side="top", showgrid=False, type="category"),
        yaxis=axis("", autorange="reversed", showgrid=False, type="category", dtick=1),
        margin={"l": 170, "r": 10, "t": 80, "b": 20},
    )
    return Choice(metric.title, [trace], shape)


def _hover(machine: Machine, workload: str, told: str) -> str:
    return f"<b>{workload}</b>, {html.escape(machine.label)}<br>{html.escape(told)}"


def each_machine(data: Merged, look: Look) -> Plot:
    plots = [(m.label, time_and_memory(m.shared, look)) for m in data.machines]
    choices = [replace(c, title=f"{label}: {c.title}") for label, plot in plots for c in plot.choices]
    return replace(plots[0][1], choices=choices, choose="machine, memory and workloads")


def all_plots(data: Merged) -> list[Plot]:
    look = Look(data.allocators)
    return [plot for plot in (means(data, look), heat_map(data), each_machine(data, look)) if plot.choices]
