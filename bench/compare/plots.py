# SPDX-License-Identifier: MIT OR Apache-2.0
"""All plots of the page, drawn by plotly in it. What each plot needs is a table of estimates, a row each.

An allocator has the same colour, symbol and dash in every plot. The colours are told apart by people with any vision, and each is
doubled by a symbol, a dash or a hatching.
"""

import html
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import cycle, product
from typing import Any

import numpy as np
import pandas as pd
import plotly.express as px
import plotly.graph_objects as go
from catalogue import GROUPS
from medians import Estimate
from metrics import BY_KEY, CALLS, CPU, FAULTS, LATENCY_METRICS, PEAK, PERCENTILES, SETTLED, TIME, WORK_METRICS, Metric
from scipy.stats import gmean
from summary import OURS, Comparison

Figure = go.Figure
FONT = {"family": "system-ui, sans-serif", "size": 13, "color": "#222"}
STYLES = {
    "color": ("#000000", "#d55e00", "#0072b2", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#7a5195", "#8c8c8c", "#5b3a1e"),
    "symbol": ("circle", "star", "square", "diamond", "triangle-up", "x", "cross", "triangle-down", "hexagon", "bowtie"),
    "line_dash": ("dot", "solid", "dash", "dashdot", "longdash", "longdashdot"),
    "pattern_shape": ("", "/", "\\", "x", "-", "|", "+", "."),
}
# Beside a point: neighbours in the list, which often lie close together, in different directions.
PLACES = ("top right", "bottom left", "bottom right", "top left")
AXIS = {"gridcolor": "#e4e4e4", "zeroline": False, "automargin": True}
ERRORS = {error: {"thickness": 1.2, "width": 3} for error in ("error_x", "error_y")}
TEMPLATE = go.layout.Template(
    layout={
        "font": FONT, "paper_bgcolor": "#fff", "plot_bgcolor": "#fff", "hovermode": "closest", "xaxis": AXIS, "yaxis": AXIS,
        "margin": {"l": 70, "r": 20, "t": 40, "b": 60}, "legend": {"orientation": "h", "y": -0.2},
    },
    data={
        "bar": [ERRORS],
        "scatter": [{"marker": {"size": 9, "line": {"width": 1, "color": "#fff"}}, "line": {"width": 1.5}, **ERRORS}],
    },
)
OURS_LARGER = {"marker": {"size": 14}, "line": {"width": 3}}
ONE = {"type": "line", "x0": 0, "x1": 1, "y0": 0, "y1": 1, "line": {"color": "#999", "width": 1}}
ABOVE = {"orientation": "h", "y": 1.0, "yanchor": "bottom"}


@dataclass(frozen=True)
class Plot:
    """With several figures the page offers a list of their titles."""

    name: str
    title: str
    help: str  # how to read it
    choices: dict[str, Figure]
    choose: str = "workload"


def style(key: str, allocators: Sequence[str]) -> dict[str, str]:
    return dict(zip(allocators, cycle(STYLES[key]), strict=False))


def row(found: Estimate, told: str, per: float = 1, **named: Any) -> dict[str, Any]:
    """`told` is what one sees who points at it."""
    ends = {"middle": found.middle, "up": found.high - found.middle, "down": found.middle - found.low}
    return named | {key: value * per for key, value in ends.items()} | {"told": told}


def drawn(kind: Callable[..., Figure], rows: Iterable[dict[str, Any]], allocators: Sequence[str], *styles: str, y: str = "middle",
           **more: Any) -> Figure | None:
    """A trace per allocator, with its intervals; nothing without rows."""
    frame = pd.DataFrame(rows)
    if frame.empty:
        return None
    styled = {"color_discrete_map" if s == "color" else f"{s}_map": style(s, allocators) for s in styles}
    along = "y" if y == "middle" else "x"
    errors = {f"error_{along}": "up", f"error_{along}_minus": "down"}
    figure = kind(frame, y=y, custom_data=["told"], template=TEMPLATE, category_orders={"allocator": list(allocators)},
                  **dict.fromkeys(styles, "allocator"), **styled, **(errors | more))
    for trace in figure.data:
        trace.update(hovertemplate="%{customdata[0]}<extra></extra>", **(OURS_LARGER if trace.name == OURS else {}))
    figure.for_each_annotation(lambda a: a.update(text=a.text.partition("=")[2]))
    return figure.update_layout(legend_title_text="")


def side_by_side(figure: Figure, orientation: str) -> Figure:
    """Symbols of one row or column beside each other, so that no interval hides another."""
    return figure.update_traces(orientation=orientation).update_layout(scattermode="group", scattergap=0.2)


def heat(rows: Sequence[str], columns: Sequence[str], cell: Callable[[str, str], tuple[float | None, str, str]]) -> Figure:
    """Of ratios: `cell` says the ratio, the text where there is none, and what one sees who points at it. Blue is good, orange is
    bad, and the colours end at a fourth and four times."""
    cells = [[cell(row, column) for column in columns] for row in rows]
    shades = [[np.nan if ratio is None else np.log2(np.clip(ratio, 0.25, 4)) for ratio, _, _ in line] for line in cells]
    figure = px.imshow(shades, x=list(columns), y=list(rows), color_continuous_scale=["#2166ac", "#f7f7f7", "#d9791e"], zmin=-2, zmax=2,
                       aspect="auto", template=TEMPLATE)
    texts = [[text if ratio is None else f"{ratio:.2f}" for ratio, text, _ in line] for line in cells]
    figure.update_traces(text=texts, texttemplate="%{text}", customdata=[[told for _, _, told in line] for line in cells],
                         hovertemplate="%{customdata}<extra></extra>", xgap=2, ygap=2, hoverongaps=True)
    bar = {"title": "ratio", "tickvals": [-2, -1, 0, 1, 2], "ticktext": ["¼", "½", "1", "2", "4"], "len": 1, "thickness": 12}
    figure.update_xaxes(side="top", showgrid=False, type="category").update_yaxes(showgrid=False, type="category", dtick=1)
    return figure.update_layout(coloraxis_colorbar=bar, height=120 + 24 * len(rows), margin={"l": 170, "r": 10, "t": 70, "b": 20})


def time_and_memory(data: Comparison, allocators: Sequence[str]) -> Plot:
    choices = {}
    for memory, section in product((PEAK, SETTLED), data.sections):
        rows = []
        for allocator in data.allocators:
            x, y = data.mean(TIME, section, allocator), data.mean(memory, section, allocator)
            if x and y:
                told = f"<b>{allocator}</b><br>time {x}<br>{memory.title} {y}<br>{y.count} workloads"
                rows.append(row(y, told, allocator=allocator, x=x.middle, x_up=x.high - x.middle, x_down=x.middle - x.low))
        figure = drawn(px.scatter, rows, allocators, "color", "symbol", x="x", error_x="x_up", error_x_minus="x_down", text="allocator")
        if figure:
            for trace in figure.data:
                trace.textposition = PLACES[allocators.index(trace.name) % len(PLACES)]
            lines = [ONE | {"x0": 1, "yref": "paper"}, ONE | {"y0": 1, "xref": "paper"}]
            figure.update_layout(height=520, showlegend=False, shapes=lines)
            figure.update_xaxes(title=f"time relative to {data.reference}", tickformat=".2f")
            figure.update_yaxes(title=f"{memory.title} relative to {data.reference}", tickformat=".2f")
            choices[f"{memory.title}, {section}"] = figure
    return Plot(
        "time_memory",
        "Time and memory",
        f"Each allocator is a point: to the left is faster, further down needs less memory; the lower left corner is where one wants "
        f"to be. {data.reference} is at 1, 1. The bars are 95 % intervals of the geometric means.",
        choices,
        "memory and workloads",
    )


def heat_map(data: Comparison) -> Plot:
    failed = {(f.workload, f.allocator): html.escape(f.reason) for f in data.failures}

    def figure(metric: Metric, rows: Sequence[str], ratio: Callable[..., Estimate | None]) -> Figure:
        def cell(workload: str, allocator: str) -> tuple[float | None, str, str]:
            found, value = ratio(metric, workload, allocator), data.absolute(metric, workload, allocator)
            why = failed.get((workload, allocator))
            told = f"failed: {why}" if why else "not measured"
            if found and value:
                told = f"{metric.title} {metric.text(value.middle)}<br>ratio {found}<br>{found.count} rounds"
            return found.middle if found else None, "F" if why else "", f"<b>{workload}</b>, {allocator}<br>{told}"

        return heat(rows, data.allocators, cell)

    choices = {}
    for metric in (*WORK_METRICS, *LATENCY_METRICS):
        if rows := [w for w in data.workloads if data.best(metric, w)]:
            choices[f"{metric.title} relative to the best of the row"] = figure(metric, rows, data.to_best)
            choices[f"{metric.title} relative to {data.reference}"] = figure(metric, rows, data.ratio)
    return Plot(
        "heat",
        "Every workload under every allocator",
        "The number in a cell is the ratio: relative to the best of the row, 1 is the best and 2 needs twice as much; relative to "
        f"{data.reference}, below 1 is better than it. Blue is good, orange is bad; the colours end at a fourth and four times. Point "
        "at a cell for the interval and the value itself; F is a failure.",
        choices,
        "quantity",
    )


def ratios(data: Comparison) -> Plot:
    """All workloads of a group at once: a row each, an allocator's symbols form a column if it is equally good everywhere."""
    choices = {}
    for group, metric in product(GROUPS, (TIME, CPU, PEAK, SETTLED, FAULTS)):
        workloads = [w for w in data.sections.get(group, []) if data.best(metric, w)]
        rows = [row(e, f"<b>{w}</b>, {a}<br>{e}", allocator=a, workload=w)
                for a in data.allocators for w in workloads if (e := data.ratio(metric, w, a))]
        figure = drawn(px.scatter, rows, data.allocators, "color", "symbol", x="middle", y="workload", log_x=True)
        if figure:
            height = 150 + (20 + 5 * len(data.allocators)) * len(workloads)
            side_by_side(figure, "h").update_layout(height=height, margin={"l": 170, "r": 20, "t": 20, "b": 50}, legend=ABOVE)
            figure.update_xaxes(title=f"{metric.title} relative to {data.reference}")
            figure.update_yaxes(title="", categoryarray=workloads[::-1], categoryorder="array", tickson="boundaries")
            choices[f"{group}: {metric.title}"] = figure
    return Plot(
        "ratios",
        "Ratios with their intervals",
        f"A row is a workload, a symbol an allocator; further left is better, {data.reference} is at 1. The bars are 95 % intervals "
        "of the median ratio: where they overlap, the order may be chance. A click on a name hides it, a "
        "double click hides all others.",
        choices,
        "group and quantity",
    )


def bars(data: Comparison) -> Plot:
    scales = {"s": (1e3, "ms"), "bytes": (2**-20, "MiB"), "": (1, "number")}
    choices = {}
    for workload in data.workloads:
        rows = []
        for metric, allocator in product((TIME, CPU, PEAK, SETTLED, FAULTS), data.allocators):
            per, unit = scales[metric.unit]
            if e := data.absolute(metric, workload, allocator):
                told = f"{allocator}: {e.middle * per:.4g} {unit}<br>{metric.title}"
                rows.append(row(e, told, per, allocator=allocator, metric=f"{metric.title}, {unit}"))
        figure = drawn(px.bar, rows, data.allocators, x="allocator", facet_col="metric", facet_col_spacing=0.05)
        if figure:
            for trace in figure.data:  # a trace per allocator would take seconds for each workload
                colours, hatches = (style(key, data.allocators) for key in ("color", "pattern_shape"))
                trace.marker = {"color": [colours[a] for a in trace.x], "pattern": {"shape": [hatches[a] for a in trace.x]}}
            figure.update_layout(height=360, showlegend=False, margin={"l": 60, "r": 10, "t": 60, "b": 90})
            figure.update_xaxes(title="", tickangle=-60, showgrid=False)
            choices[workload] = figure.update_yaxes(title="", matches=None, showticklabels=True)
    return Plot(
        "bars",
        "One workload",
        "Bars are medians of what was measured, with 95 % intervals; shorter is better. A missing bar failed or was not measured.",
        choices,
    )


def _in_nanoseconds(data: Comparison, metric: Metric, workloads: Sequence[str], allocator: str) -> Estimate | None:
    """Less than a step of the clock is 0, for which a logarithmic axis has no place."""
    found = [e for w in workloads if (e := data.absolute(metric, w, allocator))]
    if len(found) < 2:
        return Estimate(*(max(1, v) for v in (found[0].middle, found[0].low, found[0].high)), found[0].count) if found else None
    mean = float(gmean([max(1, e.middle) for e in found]))  # of different workloads there is no interval worth showing
    return Estimate(mean, mean, mean, len(found))


def latency(data: Comparison) -> Plot:
    known = [w for w in data.workloads if any(data.best(m, w) for m in LATENCY_METRICS)]
    choices = {}
    for title, workloads in (("all, geometric mean", known), *((w, [w]) for w in known)):
        rows = [
            row(e, f"<b>{a}</b> {call}<br>{share} % of the calls: {e.middle:,.0f} ns", allocator=a, call=call, share=f"{share} %")
            for call, a, (digits, share) in product(CALLS, data.allocators, PERCENTILES)
            if (e := _in_nanoseconds(data, BY_KEY[f"{call}_p{digits}"], workloads, a))
        ]
        figure = drawn(px.line, rows, data.allocators, "color", "symbol", "line_dash", x="share", facet_col="call", log_y=True)
        if figure:
            figure.update_xaxes(title="share of the calls", type="category").update_yaxes(title="nanoseconds", showticklabels=True)
            choices[title] = figure.update_layout(height=430)
    return Plot(
        "latency",
        "How long single calls take",
        "From left to right the slower calls: 50 % of the calls took at most the first value, 99.9 % at most the last; one in a "
        "thousand took longer than that. Lower is better. From runs of their own, in which each call is "
        "timed; the clock's own cost is in it.",
        choices,
    )


def throughput(data: Comparison) -> Plot:
    """Of workloads that ran with several numbers of threads and count their operations."""
    known = data.header.workloads
    choices = {}
    for name in dict.fromkeys(known[w]["name"] for w in data.workloads):
        workloads = sorted((w for w in data.workloads if known[w]["name"] == name), key=lambda w: int(known[w]["threads"]))
        counts = list(dict.fromkeys(known[w]["threads"] for w in workloads))
        rows = [
            row(e, f"<b>{a}</b>, {known[w]['threads']} threads<br>{e.middle / 1e6:,.1f} million a second", 1e-6, allocator=a,
                 threads=known[w]["threads"])
            for a in data.allocators for w in workloads if (e := data.rate(w, a))
        ]
        figure = drawn(px.line, rows, data.allocators, "color", "symbol", "line_dash", x="threads", log_x=True) if len(counts) > 1 else None
        if figure:
            figure.update_xaxes(title="threads", tickvals=counts, ticktext=counts)
            figure.update_yaxes(title="million operations a second", rangemode="tozero")
            choices[name] = figure.update_layout(height=420)
    return Plot(
        "throughput",
        "Throughput by number of threads",
        "All threads together; higher is better. More threads should give a line that rises in proportion up to the number of cores.",
        choices,
    )


def all_plots(data: Comparison) -> list[Plot]:
    """In the page's order; one that has nothing to show is left out."""
    found = (time_and_memory(data, data.allocators), heat_map(data), ratios(data), bars(data), latency(data), throughput(data))
    return [plot for plot in found if plot.choices]
