# SPDX-License-Identifier: MIT OR Apache-2.0
"""The tables of the comparison, independent of how they are shown: the page and the Markdown file have the same ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from catalogue import GROUPS
from interleave import AGAIN
from medians import ENOUGH, Estimate
from metrics import CPU, FAULTS, LATENCY_METRICS, PEAK, SETTLED, TIME, WORK_METRICS, Metric
from summary import LOST, MORE, ONE, OURS, Comparison


@dataclass(frozen=True)
class Cell:
    text: str
    order: float | str | None = None  # what a table is sorted by; None: there is nothing here

    def __str__(self) -> str:
        return self.text


NOTHING = Cell("-")


@dataclass(frozen=True)
class Table:
    name: str
    title: str
    help: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    marked: str = OURS  # the row whose first cell says this stands out
    best: bool = False  # the smallest of a column (of a row, if across) stands out
    across: bool = False
    first: int = field(default=1)  # from which column on


def word(text: str) -> Cell:
    return Cell(text, text)


def estimate(found: Estimate | None, of: int | None = None) -> Cell:
    """A ratio with its interval; says so if it is not of all workloads."""
    if found is None:
        return NOTHING
    part = f" [{found.count} of {of}]" if of is not None and found.count < of else ""
    return Cell(f"{found}{part}", found.middle)


def shown(name: str, reference: str) -> str:
    return f"{reference} again (noise)" if name == AGAIN else name


def as_json(tables: Sequence[Table]) -> list[dict[str, Any]]:
    """With the numbers behind the texts; null where there is nothing."""
    return [
        {
            "name": t.name,
            "title": t.title,
            "columns": t.columns,
            "rows": [[c.text for c in row] for row in t.rows],
            "values": [[c.order for c in row] for row in t.rows],
        }
        for t in tables
    ]


def version(info: dict[str, str]) -> str:
    """Of an allocator; ours with the commit."""
    return ", ".join(filter(None, [info.get("version", ""), info.get("commit", "")]))


def _means(data: Comparison, columns: Sequence[tuple[str, Metric, str]], to_best: bool) -> tuple[list[str], list[list[Cell]]]:
    """A row per allocator; columns are a title, a metric and a section. What nobody has is left out."""
    present = [c for c in columns if data.known(c[1], c[2])]
    rows = []
    for allocator in [*data.allocators, *([] if to_best else [AGAIN])]:
        cells = [
            estimate(data.mean(metric, section, allocator, to_best), data.known(metric, section)) for _, metric, section in present
        ]
        if to_best or allocator != data.reference:
            rows.append([word(shown(allocator, data.reference)), *cells])
        else:
            rows.append([word(allocator), *(Cell("1", 1.0) for _ in present)])
    return [title for title, _, _ in present], rows


def overview(data: Comparison) -> Table:
    columns = [
        *((f"time, {s}", TIME, s) for s in ("all", *GROUPS)),
        *((m.title, m, "all") for m in (CPU, PEAK, SETTLED, FAULTS)),
        *((m.title, m, "all") for m in LATENCY_METRICS if m.key.endswith("999")),
    ]
    titles, rows = _means(data, columns, to_best=False)
    failed = [sum(f.allocator == a for f in data.failures) for a in [*data.allocators, AGAIN]]
    return Table(
        "overview",
        f"Geometric means, relative to {data.reference}",
        f"Each number is a geometric mean over workloads of the ratio to {data.reference} in the same round: 0.80 takes four fifths "
        f"of what {data.reference} takes. Less is better. In brackets the 95 % interval; two numbers whose intervals overlap may be "
        f"the same. The last row is {data.reference} measured a second time: how far it is from 1 is chance. [3 of 4]: not all "
        "workloads know this quantity, or one failed.",
        ["allocator", *titles, "failed"],
        [[*row, Cell(str(n), n)] for row, n in zip(rows, failed, strict=True)],
        best=True,
    )


def against_best(data: Comparison) -> Table:
    columns = [*((f"time, {s}", TIME, s) for s in ("all", *GROUPS)), *((m.title, m, "all") for m in WORK_METRICS[1:])]
    titles, rows = _means(data, columns, to_best=True)
    return Table(
        "best",
        "Geometric means, relative to each workload's best allocator",
        "1.00 would be an allocator that is the best in every workload; 1.20 needs a fifth more than the best one of each. Nobody has "
        "to be good at everything at once to be the best of one workload, so all are above 1.",
        ["allocator", *titles],
        rows,
        best=True,
    )


def sections(data: Comparison) -> Table:
    columns = []
    for metric in (TIME, PEAK):
        columns += [(f"{metric.title}, {s}", metric, s) for s in (ONE, MORE)]
        columns += [(f"{metric.title}, {s}", metric, s) for s in GROUPS if metric is PEAK]
    titles, rows = _means(data, columns, to_best=False)
    return Table(
        "sections",
        f"By number of threads and by group, relative to {data.reference}",
        "micro: small programs that do little but allocate; trace: recorded calls of real programs, replayed; program: real programs.",
        ["allocator", *titles],
        rows,
        best=True,
    )


def latencies(data: Comparison) -> Table:
    titles, rows = _means(data, [(m.title, m, "all") for m in LATENCY_METRICS], to_best=False)
    return Table(
        "latencies",
        f"Latency of single calls, relative to {data.reference}",
        "malloc 99 %: the time within which 99 % of the calls of malloc return. The geometric mean over those workloads "
        "that can time each call.",
        ["allocator", *titles],
        rows if titles else [],
        best=True,
    )


def losses(data: Comparison) -> Table:
    rows = []
    for metric in (TIME, PEAK, SETTLED):
        for loss in data.losses(metric):
            certain = loss.ratio.low > LOST and loss.ratio.count >= ENOUGH
            sure = "may be noise" if loss.ratio.low <= 1 else "yes" if certain else "perhaps"
            rows.append([word(loss.workload), word(metric.title), word(loss.best), estimate(loss.ratio), word(sure)])
    return Table(
        "losses",
        "Where Terrace loses",
        f"Workloads in which Terrace needs more than {LOST:.2f} times what the best other allocator needs. Certain: the whole "
        f"interval is above {LOST:.2f}; perhaps: it is above 1, or there are fewer than {ENOUGH} rounds.",
        ["workload", "in", "best other", "Terrace relative to it", "certain"],
        rows,
        marked="",
    )


def per_workload(data: Comparison, metric: Metric) -> Table:
    others = [a for a in data.allocators if a != data.reference]
    rows = []
    for workload in data.workloads:
        base = data.absolute(metric, workload, data.reference)
        if data.best(metric, workload) is None and metric is not TIME:
            continue
        cells = [_or_failed(data, metric, workload, a) for a in [*others, AGAIN]]
        info = data.header.workloads[workload]
        absolute = Cell(metric.text(base.middle), base.middle) if base else _or_failed(data, metric, workload, data.reference)
        rows.append([word(workload), word(info["group"]), absolute, *cells])
    names = [shown(a, data.reference) for a in [*others, AGAIN]]
    return Table(
        f"per-{metric.key}",
        f"Every workload: {metric.title}",
        f"{metric.help[0].upper()}{metric.help[1:]}. {data.reference}'s median, and the others relative to it, median of the rounds "
        "and 95 % interval. After the slash of a workload's name: threads.",
        ["workload", "group", data.reference, *names],
        rows,
        marked="",
        best=True,
        across=True,
        first=3,
    )


def _or_failed(data: Comparison, metric: Metric, workload: str, allocator: str) -> Cell:
    failed = [f for f in data.failures if (f.workload, f.allocator) == (workload, allocator)]
    ratio = data.ratio(metric, workload, allocator)
    if failed:
        told = f"failed {failed[0].times} of {failed[0].runs}"
        return Cell(f"{ratio} {told}", ratio.middle) if ratio else Cell(told)
    return estimate(ratio)


def failures(data: Comparison) -> Table:
    rows = [
        [word(f.workload), word(shown(f.allocator, data.reference)), Cell(f"{f.times} of {f.runs}", f.times), word(f.reason)]
        for f in data.failures
    ]
    return Table(
        "failures",
        "What failed",
        f"A workload fails if its program ends badly, gives a wrong result or takes too long. After two failures it is not tried "
        f"again. What fails under {data.reference} as well is not the allocator's fault.",
        ["workload", "allocator", "failed", "why"],
        rows,
        marked="",
    )


def machine(data: Comparison) -> Table:
    facts = {"begun": data.header.began, "rounds": str(data.rounds), **data.header.machine}
    return Table(
        "machine",
        "Where and when",
        "The machine of these measurements.",
        ["", "what"],
        [[word(k), word(v)] for k, v in facts.items()],
        marked="",
    )


def allocators(data: Comparison) -> Table:
    columns = ("version", "mode", "settings", "hash")
    known = {name: info | {"version": version(info)} for name, info in data.header.allocators.items()}
    rows = [[word(name), *(word(info.get(k, "")) for k in columns)] for name, info in known.items()]
    return Table(
        "allocators",
        "The allocators",
        "What ran, as a program that runs on it was told, with the settings it needs; the hash is of the object's contents.",
        ["allocator", *columns],
        rows,
    )


def all_tables(data: Comparison) -> list[Table]:
    """In the page's order."""
    wanted = [m for m in WORK_METRICS if data.known(m, "all")]
    timed = [m for m in LATENCY_METRICS if data.known(m, "all")]
    return [
        overview(data),
        against_best(data),
        sections(data),
        latencies(data),
        losses(data),
        failures(data),
        *(per_workload(data, m) for m in [*wanted, *timed]),
        allocators(data),
        machine(data),
    ]
