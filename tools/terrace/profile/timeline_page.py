# SPDX-License-Identifier: MIT OR Apache-2.0
"""A timeline as one page that needs no network: by plotly."""

import html
from datetime import datetime, timezone

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from terrace.messages import count
from terrace.profile.timeline import Moment, Timeline
from terrace.report.cells import human_bytes

_SITES, _CLASSES = 10, 15
_REST = "other sites"
_SUMMARY = "font: 15px system-ui, sans-serif; max-width: 72em; margin: 1.5em auto 0"


def _largest_sites(moments: list[Moment]) -> list[str]:
    """By the most that each ever had."""
    most: dict[str, float] = {}
    for moment in moments:
        for name, size in moment.sites.items():
            most[name] = max(most.get(name, 0), size)
    return sorted(most, key=lambda name: -most[name])[:_SITES]


def _by_site(moments: list[Moment]) -> dict[str, list[float]]:
    chosen = _largest_sites(moments)
    series = {name: [m.sites.get(name, 0.0) for m in moments] for name in reversed(chosen)}
    rest = [sum(size for name, size in m.sites.items() if name not in chosen) for m in moments]
    return {_REST: rest, **series} if any(rest) else series


def _by_level(moments: list[Moment]) -> dict[str, list[float]]:
    names = list(dict.fromkeys(name for m in moments for name in m.levels()))
    return {name: [float(m.levels().get(name, 0)) for m in moments] for name in names}


def _rates(moments: list[Moment]) -> list[float]:
    """Allocations per second between a look and the one before."""
    counts = [
        sum(u.allocations for u in m.snapshot.classes) + m.snapshot.large.allocations
        for m in moments
    ]
    rates = [
        max(b - a, 0) / max(after.time - before.time, 1e-9)
        for a, b, before, after in zip(counts, counts[1:], moments, moments[1:], strict=False)
    ]
    return rates[:1] + rates


def _unused(moment: Moment) -> list[tuple[str, int, int]]:
    """Classes by memory of their slabs that is not live: name, live, the others."""
    rows = [
        (u.owner.name, u.live_bytes, max(u.memory - u.live_bytes, 0))
        for u in moment.snapshot.classes
    ]
    return sorted(rows, key=lambda row: -row[2])[:_CLASSES][::-1]


def _summary(timeline: Timeline) -> str:
    first, last = timeline.moments[0], timeline.moments[-1]
    most = max(timeline.moments, key=lambda m: m.snapshot.live_bytes)
    minutes = (last.time - first.time) / 60
    change = last.snapshot.live_bytes - first.snapshot.live_bytes
    words = [
        f"{timeline.title}, {count(len(timeline.moments), 'look')} in {minutes:.1f} minutes",
        f"live {human_bytes(last.snapshot.live_bytes)} at the end "
        f"({'-' if change < 0 else '+'}{human_bytes(abs(change))}), "
        f"{human_bytes(most.snapshot.live_bytes)} at most, of resident "
        f"{human_bytes(last.resident)}",
    ]
    return "; ".join([*words, timeline.ended] if timeline.ended else words) + "."


def page(timeline: Timeline) -> str:
    """HTML. Times are UTC."""
    moments = timeline.moments
    times = [datetime.fromtimestamp(m.time, timezone.utc) for m in moments]
    titles = (
        "In use, by the line of code that has allocated it (estimated)",
        "Where the memory is, level by level", "Allocations per second",
        "Slabs at the end: live, and what is not",
    )  # fmt: skip
    figure = make_subplots(rows=4, cols=1, subplot_titles=titles, vertical_spacing=0.07)
    for row, series in ((1, _by_site(moments)), (2, _by_level(moments))):
        for name, values in series.items():
            area = go.Scatter(
                x=times, y=values, name=html.escape(name), mode="lines", stackgroup=str(row),
                line={"width": 0.5, "color": "#999" if name == _REST else None},
                legend="legend" if row == 1 else "legend2",
            )  # fmt: skip
            figure.add_trace(area, row=row, col=1)
    resident = go.Scatter(
        x=times, y=[m.resident for m in moments], name="resident, whole process", mode="lines",
        line={"color": "black", "dash": "dot"}, legend="legend2",
    )  # fmt: skip
    figure.add_trace(resident, row=2, col=1)
    rate = go.Scatter(x=times, y=_rates(moments), mode="lines", showlegend=False, name="per second")
    figure.add_trace(rate, row=3, col=1)
    rows = _unused(moments[-1])
    for name, at, color in (("live", 1, "#4c78a8"), ("not live", 2, "#e45756")):
        bar = go.Bar(
            y=[row[0] for row in rows], x=[row[at] for row in rows], orientation="h", name=name,
            marker={"color": color}, legend="legend3",
        )  # fmt: skip
        figure.add_trace(bar, row=4, col=1)
    figure.update_layout(
        barmode="stack", height=1700, template="plotly_white", hovermode="x unified",
        legend={"y": 1, "yanchor": "top"}, legend2={"y": 0.73, "yanchor": "top"},
        legend3={"y": 0.19, "yanchor": "top"}, margin={"t": 60},
    )  # fmt: skip
    for row in (1, 2):
        figure.update_yaxes(tickformat="~s", ticksuffix="B", rangemode="tozero", row=row, col=1)
    figure.update_yaxes(tickformat="~s", rangemode="tozero", row=3, col=1)
    figure.update_xaxes(tickformat="~s", ticksuffix="B", row=4, col=1)
    figure.update_yaxes(type="category", title="size class", row=4, col=1)
    drawn = figure.to_html(include_plotlyjs=True, full_html=False)
    name = html.escape(timeline.title)
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{name}</title></head>'
        f'<body><p style="{_SUMMARY}">{html.escape(_summary(timeline))}</p>{drawn}</body></html>\n'
    )
