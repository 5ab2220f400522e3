# SPDX-License-Identifier: MIT OR Apache-2.0
"""The tables of the comparison, independent of how they are shown: the page and the Markdown file have the same ones."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from catalogue import GROUPS
from interleave import AGAIN
from medians import ENOUGH, Estimate
from metrics import CPU, FAULTS, LATENCY_METRICS, PEAK, SETTLED, TIME, WORK_METRICS, Metric
from report import Table
from summary import LOST, MORE, ONE, OURS, Comparison


@dataclass(frozen=True)
class Cell:
    text: str
    order: float | str | None = None  # what a table is sorted by; None: there is nothing here

    def __str__(self) -> str:
        return self.text


NOTHING = Cell("-")
Rows = list[list[Cell]]
Column = tuple[str, Metric, str]  # title, quantity, section
TIMES: tuple[Column, ...] = tuple((f"time, {s}", TIME, s) for s in ("all", *GROUPS))


def word(text: str | None) -> Cell:
    return Cell(text, text) if text else NOTHING


def estimate(found: Estimate | None, of: int | None = None) -> Cell:
    """A ratio with its interval; says so if it is not of all workloads."""
    if found is None:
        return NOTHING
    part = f" [{found.count} of {of}]" if of is not None and found.count < of else ""
    return Cell(f"{found}{part}", found.middle)


def shown(name: str, reference: str) -> str:
    return f"{reference} again (noise)" if name == AGAIN else name


def bests(columns: Sequence[str], rows: Rows, first: int = 1, across: bool = False) -> frozenset[tuple[int, int]]:
    """Row and column of the smallest number of each column, or row; the second run of the reference is out of the contest."""
    lines: dict[int, list[tuple[float, tuple[int, int]]]] = {}
    for r, row in enumerate(rows):
        for c, cell in enumerate(row):
            if c >= first and isinstance(cell.order, float) and AGAIN not in f"{row[0].text} {columns[c]}".split():
                lines.setdefault(r if across else c, []).append((cell.order, (r, c)))
    # A row has no cell for the reference, which is 1.
    return frozenset(place for value, place in map(min, lines.values()) if value < 1 or not across)


def as_json(tables: Sequence[Table]) -> list[dict[str, Any]]:
    """With the numbers behind the texts; null where there is nothing."""

    def each(table: Table, what: str) -> list[list[Any]]:
        return [[getattr(cell, what) for cell in row] for row in table.rows]

    return [{"name": t.name, "title": t.title, "columns": t.columns, "rows": each(t, "text"), "values": each(t, "order")} for t in tables]


def version(info: dict[str, str]) -> str:
    """Of an allocator; ours with the commit."""
    return ", ".join(filter(None, [info.get("version", ""), info.get("commit", "")]))


def _means(data: Comparison, name: str, title: str, told: str, columns: Sequence[Column], to_best: bool = False) -> Table:
    """A row per allocator. A column that nobody has anything for is left out."""
    present = [c for c in columns if data.known(c[1], c[2])]
    rows: Rows = []
    for allocator in [*data.allocators, *([] if to_best else [AGAIN])]:
        is_one = allocator == data.reference and not to_best
        rows.append([word(shown(allocator, data.reference)), *(
            Cell("1", 1.0) if is_one else estimate(data.mean(metric, section, allocator, to_best), data.known(metric, section))
            for _, metric, section in present)])
    titles = ["allocator", *(title for title, _, _ in present)]
    return Table(titles, rows if present else [], name, title, told, OURS, bests(titles, rows))


def _titled(metrics: Sequence[Metric]) -> list[Column]:
    return [(m.title, m, "all") for m in metrics]


def overview(data: Comparison) -> Table:
    tails = [m for m in LATENCY_METRICS if m.key.endswith("999")]
    means = _means(
        data,
        "overview",
        f"Geometric means, relative to {data.reference}",
        f"Each number is a geometric mean over workloads of the ratio to {data.reference} in the same round: 0.80 takes four fifths "
        f"of what {data.reference} takes. Less is better. In brackets the 95 % interval; two numbers whose intervals overlap may be "
        f"the same. The last row is {data.reference} measured a second time: how far it is from 1 is chance. [3 of 4]: not all "
        "workloads know this quantity, or one failed.",
        [*TIMES, *_titled((CPU, PEAK, SETTLED, FAULTS, *tails))],
    )
    failed = [sum(f.allocator == a for f in data.failures) for a in [*data.allocators, AGAIN]]
    rows = [[*row, Cell(str(n), n)] for row, n in zip(means.rows, failed, strict=True)]
    return Table([*means.columns, "failed"], rows, means.name, means.title, means.help, OURS, means.bests)


def against_best(data: Comparison) -> Table:
    return _means(
        data,
        "best",
        "Geometric means, relative to each workload's best allocator",
        "1.00 would be an allocator that is the best in every workload; 1.20 needs a fifth more than the best one of each. Nobody has "
        "to be good at everything at once to be the best of one workload, so all are above 1.",
        [*TIMES, *_titled(WORK_METRICS[1:])],
        to_best=True,
    )


def sections(data: Comparison) -> Table:
    return _means(
        data,
        "sections",
        f"By number of threads and by group, relative to {data.reference}",
        "micro: small programs that do little but allocate; trace: recorded calls of real programs, replayed; program: real programs.",
        [*((f"time, {s}", TIME, s) for s in (ONE, MORE)), *((f"{PEAK.title}, {s}", PEAK, s) for s in (ONE, MORE, *GROUPS))],
    )


def latencies(data: Comparison) -> Table:
    return _means(
        data,
        "latencies",
        f"Latency of single calls, relative to {data.reference}",
        "malloc 99 %: the time within which 99 % of the calls of malloc return. The geometric mean over those workloads "
        "that can time each call.",
        _titled(LATENCY_METRICS),
    )


def losses(data: Comparison) -> Table:
    rows = []
    for metric in (TIME, PEAK, SETTLED):
        for loss in data.losses(metric):
            certain = loss.ratio.low > LOST and loss.ratio.count >= ENOUGH
            sure = "may be noise" if loss.ratio.low <= 1 else "yes" if certain else "perhaps"
            rows.append([word(loss.workload), word(metric.title), word(loss.best), estimate(loss.ratio), word(sure)])
    return Table(
        ["workload", "in", "best other", "Terrace relative to it", "certain"],
        rows,
        "losses",
        "Where Terrace loses",
        f"Workloads in which Terrace needs more than {LOST:.2f} times what the best other allocator needs. Certain: the whole "
        f"interval is above {LOST:.2f}; perhaps: it is above 1, or there are fewer than {ENOUGH} rounds.",
    )


def per_workload(data: Comparison, metric: Metric) -> Table:
    shown_ones = [*(a for a in data.allocators if a != data.reference), AGAIN]
    rows: Rows = []
    for workload in data.workloads:
        if data.best(metric, workload) is None and metric is not TIME:
            continue
        base = data.absolute(metric, workload, data.reference)
        absolute = Cell(metric.text(base.middle), base.middle) if base else _or_failed(data, metric, workload, data.reference)
        group = word(data.header.workloads[workload]["group"])
        rows.append([word(workload), group, absolute, *(_or_failed(data, metric, workload, a) for a in shown_ones)])
    columns = ["workload", "group", data.reference, *(shown(a, data.reference) for a in shown_ones)]
    return Table(
        columns,
        rows,
        f"per-{metric.key}",
        f"Every workload: {metric.title}",
        f"{metric.help[0].upper()}{metric.help[1:]}. {data.reference}'s median, and the others relative to it, median of the rounds "
        "and 95 % interval. After the slash of a workload's name: threads.",
        bests=bests(columns, rows, first=3, across=True),
    )


def _or_failed(data: Comparison, metric: Metric, workload: str, allocator: str) -> Cell:
    ratio = data.ratio(metric, workload, allocator)
    if told := data.failed(workload, allocator):
        return Cell(f"{ratio} {told}", ratio.middle) if ratio else Cell(told)
    return estimate(ratio)


def failures(data: Comparison) -> Table:
    rows = [
        [word(f.workload), word(shown(f.allocator, data.reference)), Cell(f"{f.times} of {f.runs}", f.times), word(f.reason)]
        for f in data.failures
    ]
    told = (
        f"A workload fails if its program ends badly, gives a wrong result or takes too long. After two failures it is not tried "
        f"again. What fails under {data.reference} as well is not the allocator's fault."
    )
    return Table(["workload", "allocator", "failed", "why"], rows, "failures", "What failed", told)


def machine(data: Comparison) -> Table:
    facts = {"begun": data.header.began, "rounds": str(data.rounds), **data.header.machine}
    rows = [[Cell(k, k), Cell(v, v)] for k, v in facts.items()]
    return Table(["", "what"], rows, "machine", "Where and when", "The machine of these measurements.")


def allocators(data: Comparison) -> Table:
    columns = ("version", "mode", "settings", "hash")
    known = {name: info | {"version": version(info)} for name, info in data.header.allocators.items()}
    rows = [[word(name), *(Cell(text := info.get(k, ""), text) for k in columns)] for name, info in known.items()]
    told = "What ran, as a program that runs on it was told, with the settings it needs; the hash is of the object's contents."
    return Table(["allocator", *columns], rows, "allocators", "The allocators", told, OURS)


def all_tables(data: Comparison) -> list[Table]:
    """In the page's order."""
    known = [m for m in (*WORK_METRICS, *LATENCY_METRICS) if data.known(m, "all")]
    first = [overview(data), against_best(data), sections(data), latencies(data), losses(data), failures(data)]
    return [*first, *(per_workload(data, m) for m in known), allocators(data), machine(data)]
