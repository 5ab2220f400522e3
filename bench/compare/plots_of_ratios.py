# SPDX-License-Identifier: MIT OR Apache-2.0
"""Plots of what is relative: the means, every cell of workloads and allocators, ratios with intervals."""

from __future__ import annotations

import html
import math

from catalogue import GROUPS
from look import Choice, Json, Look, Plot, axis, errors, layout, ticks
from medians import Estimate
from metrics import CPU, FAULTS, LATENCY_METRICS, PEAK, SETTLED, TIME, WORK_METRICS, Metric
from summary import Comparison


# Of a heat map of ratios: blue is good, orange is bad, and the colours end at a fourth and four times.
BAR = {"len": 1, "thickness": 12}
SHADES: Json = {
    "type": "heatmap",
    "colorscale": [[0, "#2166ac"], [0.5, "#f7f7f7"], [1, "#d9791e"]],
    "zmin": -2,
    "zmax": 2,
    "texttemplate": "%{text}",
    "hovertemplate": "%{customdata}<extra></extra>",
    "colorbar": {"title": {"text": "ratio"}, "tickvals": [-2, -1, 0, 1, 2], "ticktext": ["¼", "½", "1", "2", "4"], **BAR},
    "xgap": 2,
    "ygap": 2,
    "hoverongaps": True,
}


def time_and_memory(data: Comparison, look: Look) -> Plot:
    choices = []
    for memory in (PEAK, SETTLED):
        for section in data.sections:
            traces = [t for a in data.allocators if (t := _point(data, look, a, memory, section))]
            if traces:
                lines = [
                    {"type": "line", "x0": 1, "x1": 1, "y0": 0, "y1": 1, "yref": "paper", "line": {"color": "#999", "width": 1}},
                    {"type": "line", "y0": 1, "y1": 1, "x0": 0, "x1": 1, "xref": "paper", "line": {"color": "#999", "width": 1}},
                ]
                choices.append(
                    Choice(
                        f"{memory.title}, {section}",
                        traces,
                        layout(
                            520,
                            shapes=lines,
                            showlegend=False,
                            xaxis=axis(f"time relative to {data.reference}", tickformat=".2f"),
                            yaxis=axis(f"{memory.title} relative to {data.reference}", tickformat=".2f"),
                        ),
                    )
                )
    return Plot(
        "time_memory",
        "Time and memory",
        f"Each allocator is a point: to the left is faster, further down needs less memory; the lower left corner is where one wants "
        f"to be. {data.reference} is at 1, 1. The bars are 95 % intervals of the geometric means.",
        choices,
        "memory and workloads",
    )


def _point(data: Comparison, look: Look, allocator: str, memory: Metric, section: str) -> Json | None:
    x, y = data.mean(TIME, section, allocator), data.mean(memory, section, allocator)
    if x is None or y is None:
        return None
    return {
        "type": "scatter",
        "mode": "markers+text",
        "name": allocator,
        "x": [x.middle],
        "y": [y.middle],
        "text": [allocator],
        "textposition": look.label(allocator),
        "error_x": errors([x]),
        "error_y": errors([y]),
        "marker": look.marker(allocator),
        "hovertemplate": f"<b>{allocator}</b><br>time {x}<br>{memory.title} {y}<br>{y.count} workloads<extra></extra>",
    }


def heat_map(data: Comparison) -> Plot:
    choices = []
    for metric in (*WORK_METRICS, *LATENCY_METRICS):
        rows = [w for w in data.workloads if data.best(metric, w) is not None]
        if rows:
            choices += [_heat(data, metric, rows, to_best=True), _heat(data, metric, rows, to_best=False)]
    return Plot(
        "heat",
        "Every workload under every allocator",
        "The number in a cell is the ratio: relative to the best of the row, 1 is the best and 2 needs twice as much; relative to "
        f"{data.reference}, below 1 is better than it. Blue is good, orange is bad; the colours end at a fourth and four times. Point "
        "at a cell for the interval and the value itself; F is a failure.",
        choices,
        "quantity",
    )


def _heat(data: Comparison, metric: Metric, rows: list[str], to_best: bool) -> Choice:
    shades, texts, hovers = [], [], []
    for workload in rows:
        found = [data.to_best(metric, workload, a) if to_best else data.ratio(metric, workload, a) for a in data.allocators]
        shades.append([math.log2(min(max(e.middle, 0.25), 4)) if e else None for e in found])
        texts.append([f"{e.middle:.2f}" if e else _failed(data, workload, a) for e, a in zip(found, data.allocators, strict=True)])
        hovers.append([_hover(data, metric, workload, a, e) for e, a in zip(found, data.allocators, strict=True)])
    base = "the best of the row" if to_best else data.reference
    trace = SHADES | {
        "x": data.allocators,
        "y": rows,
        "z": shades,
        "text": texts,
        "customdata": hovers,
            }
    return Choice(
        f"{metric.title} relative to {base}",
        [trace],
        layout(
            110 + 24 * len(rows),
            xaxis=axis("", side="top", showgrid=False, type="category"),
            yaxis=axis("", autorange="reversed", showgrid=False, type="category", dtick=1),
            margin={"l": 170, "r": 10, "t": 60, "b": 20},
        ),
    )


def _failed(data: Comparison, workload: str, allocator: str) -> str:
    return "F" if any((f.workload, f.allocator) == (workload, allocator) for f in data.failures) else ""


def _hover(data: Comparison, metric: Metric, workload: str, allocator: str, ratio: Estimate | None) -> str:
    value = data.absolute(metric, workload, allocator)
    head = f"<b>{workload}</b>, {allocator}"
    if ratio and value:
        return f"{head}<br>{metric.title} {metric.text(value.middle)}<br>ratio {ratio}<br>{ratio.count} rounds"
    reasons = [f.reason for f in data.failures if (f.workload, f.allocator) == (workload, allocator)]
    return f"{head}<br>{'failed: ' + html.escape(reasons[0]) if reasons else 'not measured'}"


def ratios(data: Comparison, look: Look) -> Plot:
    """All workloads of a group at once: a row each, an allocator's symbols form a column if it is equally good everywhere."""
    choices = []
    for group in GROUPS:
        for metric in (TIME, CPU, PEAK, SETTLED, FAULTS):
            rows = [w for w in data.sections.get(group, []) if data.best(metric, w) is not None]
            traces = [t for a in data.allocators if rows and (t := _row_of_ratios(data, look, metric, rows, a))]
            if traces:
                choices.append(Choice(f"{group}: {metric.title}", traces, _shape_of_ratios(data, metric, rows)))
    return Plot(
        "ratios",
        "Ratios with their intervals",
        f"A row is a workload, a symbol an allocator; further left is better, {data.reference} is at 1. The bars are 95 % intervals "
        "of the median ratio: where they overlap, the order may be chance. A click on a name hides it, a "
        "double click hides all others.",
        choices,
        "group and quantity",
    )


def _shape_of_ratios(data: Comparison, metric: Metric, rows: list[str]) -> Json:
    found = [e for w in rows for a in data.allocators if (e := data.ratio(metric, w, a))]
    return layout(
        150 + (20 + 5 * len(data.allocators)) * len(rows),
        xaxis=axis(f"{metric.title} relative to {data.reference}", **ticks(min(e.low for e in found), max(e.high for e in found))),
        yaxis=axis("", tickvals=list(range(len(rows))), ticktext=rows, range=[len(rows) - 0.5, -0.5], showgrid=False),
        shapes=[
            {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": r + 0.5, "y1": r + 0.5, "line": {"color": "#ccc", "width": 1}}
            for r in range(len(rows) - 1)
        ],
        margin={"l": 170, "r": 20, "t": 20, "b": 50},
        legend={"orientation": "h", "y": 1.0, "yanchor": "bottom"},
    )


def _row_of_ratios(data: Comparison, look: Look, metric: Metric, rows: list[str], allocator: str) -> Json | None:
    """An allocator has its own height within a row, so that no interval hides another."""
    found = [(r, e) for r, w in enumerate(rows) if (e := data.ratio(metric, w, allocator))]
    if not found:
        return None
    count = len(data.allocators)
    offset = 0.8 * ((data.allocators.index(allocator) + 0.5) / count - 0.5)
    present = [e for _, e in found]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": allocator,
        "y": [r + offset for r, _ in found],
        "x": [e.middle for e in present],
        "error_x": errors(present) | {"color": look.colour(allocator)},
        "marker": look.marker(allocator),
        "customdata": [f"<b>{rows[r]}</b>, {allocator}<br>{e}" for r, e in found],
        "hovertemplate": "%{customdata}<extra></extra>",
    }
