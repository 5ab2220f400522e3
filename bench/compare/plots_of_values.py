# SPDX-License-Identifier: MIT OR Apache-2.0
"""Plots of what was measured itself, of a workload that is chosen: bars, latency, throughput."""

from __future__ import annotations

from look import Choice, Json, Look, Plot, axis, errors, layout, ticks
from medians import Estimate, geometric_mean
from metrics import BY_KEY, CALLS, CPU, FAULTS, LATENCY_METRICS, PEAK, PERCENTILES, SETTLED, TIME
from summary import Comparison


def bars(data: Comparison, look: Look) -> Plot:
    choices = [Choice(workload, *_bars_of(data, look, workload)) for workload in data.workloads]
    return Plot(
        "bars",
        "One workload",
        "Bars are medians of what was measured, with 95 % intervals; shorter is better. A missing bar failed or was not measured.",
        [c for c in choices if c.traces],
    )


def _bars_of(data: Comparison, look: Look, workload: str) -> tuple[list[Json], Json]:
    scales = {"s": (1e3, "ms"), "bytes": (2**-20, "MiB"), "": (1, "number")}
    metrics = [m for m in (TIME, CPU, PEAK, SETTLED, FAULTS) if data.best(m, workload)]
    shape = layout(360, showlegend=False, margin={"l": 60, "r": 10, "t": 60, "b": 90}, bargap=0.25)
    traces: list[Json] = []
    width = 1 / max(1, len(metrics))
    shape["annotations"] = []
    for i, metric in enumerate(metrics):
        number = "" if i == 0 else str(i + 1)
        factor, unit = scales[metric.unit]
        found = [(a, e) for a in data.allocators if (e := data.absolute(metric, workload, a))]
        traces.append(
            {
                "type": "bar",
                "x": [a for a, _ in found],
                "y": [e.middle * factor for _, e in found],
                "xaxis": f"x{number}",
                "yaxis": f"y{number}",
                "error_y": errors([e for _, e in found], factor),
                "name": metric.title,
                "marker": {
                    "color": [look.colour(a) for a, _ in found],
                    "pattern": {"shape": [look.hatch(a) for a, _ in found], "fgcolor": "#fff", "size": 7, "solidity": 0.6},
                },
                "hovertemplate": f"%{{x}}: %{{y:.4g}} {unit}<extra>{metric.title}</extra>",
            }
        )
        start = i * width
        shape[f"xaxis{number}"] = axis(
            "", domain=[start + 0.045, start + width - 0.005], anchor=f"y{number}", tickangle=-60, showgrid=False
        )
        shape[f"yaxis{number}"] = axis("", anchor=f"x{number}", rangemode="tozero")
        shape["annotations"].append(
            {
                "text": f"{metric.title}, {unit}",
                "x": start + 0.045,
                "xanchor": "left",
                "y": 1.12,
                "xref": "paper",
                "yref": "paper",
                "showarrow": False,
            }
        )
    return traces, shape


def latency(data: Comparison, look: Look) -> Plot:
    known = [w for w in data.workloads if any(data.best(m, w) for m in LATENCY_METRICS)]
    choices = [Choice("all, geometric mean", *_latency_of(data, look, known))] if known else []
    choices += [Choice(w, *_latency_of(data, look, [w])) for w in known]
    return Plot(
        "latency",
        "How long single calls take",
        "From left to right the slower calls: 50 % of the calls took at most the first value, 99.9 % at most the last; one in a "
        "thousand took longer than that. Lower is better. From runs of their own, in which each call is "
        "timed; the clock's own cost is in it.",
        choices,
    )


def _shown(e: Estimate) -> Estimate:
    """Less than a step of the clock is 0, for which a logarithmic axis has no place."""
    return Estimate(max(1, e.middle), max(1, e.low), max(1, e.high), e.count)


def _latency_of(data: Comparison, look: Look, workloads: list[str]) -> tuple[list[Json], Json]:
    traces: list[Json] = []
    shape = layout(430, margin={"l": 70, "r": 20, "t": 50, "b": 60})
    shape["annotations"] = []
    heights: list[float] = []
    for i, call in enumerate(CALLS):
        number = "" if i == 0 else str(i + 1)
        for allocator in data.allocators:
            points = []
            for digits, title in PERCENTILES:
                found = [e for w in workloads if (e := data.absolute(BY_KEY[f"{call}_p{digits}"], w, allocator))]
                if len(found) == 1:
                    points.append((f"{title} %", found[0]))
                elif found:  # of absolute values of different workloads there is no interval worth showing
                    mean = geometric_mean([max(1, e.middle) for e in found])
                    points.append((f"{title} %", Estimate(mean, mean, mean, len(found))))
            estimates = [_shown(e) for _, e in points]
            heights += [e.middle for e in estimates]
            traces.append(
                {
                    "type": "scatter",
                    "mode": "lines+markers",
                    "name": allocator,
                    "legendgroup": allocator,
                    "showlegend": i == 0,
                    "x": [title for title, _ in points],
                    "y": [e.middle for e in estimates],
                    "error_y": errors(estimates),
                    "xaxis": f"x{number}",
                    "yaxis": f"y{number}",
                    "line": look.line(allocator),
                    "marker": look.marker(allocator),
                    "hovertemplate": f"<b>{allocator}</b> {call}<br>%{{x}} of the calls: %{{y:,.0f}} ns<extra></extra>",
                }
            )
        shape[f"xaxis{number}"] = axis("share of the calls", domain=[0.55 * i, 0.55 * i + 0.45], anchor=f"y{number}", type="category")
        shape["annotations"].append(
            {
                "text": f"<b>{call}</b>",
                "x": 0.55 * i,
                "y": 1.08,
                "xref": "paper",
                "yref": "paper",
                "xanchor": "left",
                "showarrow": False,
            }
        )
    for number in ("", "2"):
        shape[f"yaxis{number}"] = axis("nanoseconds", anchor=f"x{number}", **ticks(min(heights, default=1), max(heights, default=2)))
    return traces, shape


def throughput(data: Comparison, look: Look) -> Plot:
    """Of workloads that ran with several numbers of threads and count their operations."""
    by_name: dict[str, list[str]] = {}
    for workload in data.workloads:
        by_name.setdefault(data.header.workloads[workload]["name"], []).append(workload)
    choices = []
    for name, workloads in by_name.items():
        if len({data.header.workloads[w]["threads"] for w in workloads}) > 1:
            traces = [t for a in data.allocators if (t := _throughput_of(data, look, workloads, a))]
            counts = sorted({data.header.workloads[w]["threads"] for w in workloads})
            if traces:
                choices.append(
                    Choice(
                        name,
                        traces,
                        layout(
                            420,
                            xaxis=axis("threads", type="log", tickvals=counts, ticktext=[str(c) for c in counts]),
                            yaxis=axis("million operations a second", rangemode="tozero"),
                        ),
                    )
                )
    return Plot(
        "throughput",
        "Throughput by number of threads",
        "All threads together; higher is better. More threads should give a line that rises in proportion up to the number of cores.",
        choices,
    )


def _throughput_of(data: Comparison, look: Look, workloads: list[str], allocator: str) -> Json | None:
    found = []
    for workload in sorted(workloads, key=lambda w: int(data.header.workloads[w]["threads"])):
        rate = data.rate(workload, allocator)
        if rate:
            found.append((data.header.workloads[workload]["threads"], rate))
    if len(found) < 2:
        return None
    rates = [e for _, e in found]
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": allocator,
        "x": [t for t, _ in found],
        "y": [e.middle / 1e6 for e in rates],
        "error_y": errors(rates, 1e-6),
        "line": look.line(allocator),
        "marker": look.marker(allocator),
        "hovertemplate": f"<b>{allocator}</b>, %{{x}} threads<br>%{{y:,.1f}} million a second<extra></extra>",
    }
