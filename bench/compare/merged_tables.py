# SPDX-License-Identifier: MIT OR Apache-2.0
"""The tables of several machines, and sentences made from their numbers. A dash is what a machine has not measured."""

from collections.abc import Iterator, Sequence

from catalogue import GROUPS
from findings import percent
from interleave import AGAIN
from medians import ENOUGH
from merged import Machine, Merged
from metrics import CPU, PEAK, SETTLED, TIME, WORK_METRICS, Metric
from summary import LOST, OURS, WON
from report import Table
from tables import NOTHING, TIMES, Cell, Rows, bests, estimate, shown, version, word

SHARED = "Over those workloads that every machine has measured; [3 of 4]: not all of them know this quantity, or one failed."
COLUMNS = (*TIMES, *((m.title, m, "all") for m in (CPU, PEAK, SETTLED)))


def _to_others(machine: Machine, metric: Metric, section: str, others: list[str] | None) -> Cell:
    return estimate(machine.shared.mean_to_others(metric, section, others), machine.shared.known(metric, section))


def _by_machine(data: Merged, name: str, title: str, told: str, others: list[str] | None) -> Table:
    """A row per machine; a quantity that no machine knows is left out."""
    present = [c for c in COLUMNS if any(m.data.known(c[1], c[2]) for m in data.machines)]
    rows = [[word(m.label), *(_to_others(m, metric, section, others) for _, metric, section in present)] for m in data.machines]
    return Table(["machine", *(column for column, _, _ in present)], rows, name, title, f"{told} {SHARED}")


def summary(data: Merged) -> Table:
    told = "Geometric means: 0.90 takes nine tenths of what the best other takes; less is better; in brackets the 95 % interval."
    return _by_machine(data, "summary", "Terrace relative to each workload's best other allocator, by machine", told, None)


def alike(data: Merged) -> Table | None:
    """The same where no machine has a rival that another one lacks; nothing to add if none has."""
    if all(set(m.data.others) == set(data.everywhere) for m in data.machines):
        return None
    title = f"The same, with only the allocators that every machine has: {', '.join(data.everywhere)}"
    told = "A machine with fewer rivals makes the best of them easier to reach; here the rivals are the same everywhere."
    return _by_machine(data, "alike", title, told, data.everywhere)


def _mean(data: Merged, machine: Machine, metric: Metric, section: str, allocator: str) -> Cell:
    if allocator == data.reference:
        return Cell("1", 1.0) if machine.shared.known(metric, section) else NOTHING
    if allocator == AGAIN and next(iter(machine.data.header.allocators)) != data.reference:
        return NOTHING  # there it is another allocator's second run
    return estimate(machine.shared.mean(metric, section, allocator), machine.shared.known(metric, section))


def means(data: Merged, metric: Metric, section: str = "all") -> Table:
    """A row per allocator, a column per machine."""
    rows: Rows = [[word(shown(a, data.reference)), *(_mean(data, m, metric, section, a) for m in data.machines)]
                  for a in [*data.allocators, AGAIN]]
    part = "" if section == "all" else f", {section}"
    columns = ["allocator", *(m.label for m in data.machines)]
    return Table(
        columns,
        rows,
        f"means-{metric.key}" if section == "all" else f"per-means-{section}",
        f"Geometric means relative to {data.reference}: {metric.title}{part}",
        f"A dash: that machine did not have the allocator. {SHARED}",
        OURS,
        bests(columns, rows),
    )


def _ratio(machine: Machine, metric: Metric, workload: str) -> Cell:
    """Terrace's to the best other of that machine, with its name."""
    found = machine.data.against_other(metric, workload)
    told = machine.data.failed(workload, OURS)
    if found is None:
        return Cell(told) if told else NOTHING
    ratio = found.ratio
    text = f"{ratio.middle:.2f} {found.best} ({ratio.low:.2f}-{ratio.high:.2f})"
    return Cell(" ".join(filter(None, [text, told])), ratio.middle)


def per_workload(data: Merged, metric: Metric) -> Table:
    rows = [[word(w), word(info["group"]), *(_ratio(m, metric, w) for m in data.machines)] for w, info in data.workloads.items()]
    return Table(
        ["workload", "group", *(m.label for m in data.machines)],
        [row for row in rows if any(cell != NOTHING for cell in row[2:])],
        f"per-{metric.key}",
        f"Every workload: {metric.title}, Terrace relative to the best other allocator",
        "The ratio, which other allocator is the best on that machine, and the 95 % interval. After the slash of a workload's name: "
        "threads; cores: one thread per core. A dash: that machine did not measure it.",
    )


def failures(data: Merged) -> Table:
    rows = []
    for machine in data.machines:
        for f in machine.data.failures:
            who = shown(f.allocator, machine.data.reference)
            rows.append([word(machine.label), word(f.workload), word(who), Cell(f"{f.times} of {f.runs}", f.times), word(f.reason)])
    columns = ["machine", "workload", "allocator", "failed", "why"]
    return Table(columns, rows, "failures", "What failed", "A workload fails if its program ends badly, gives a wrong result or takes too long.")


def machines(data: Merged) -> Table:
    names = list(dict.fromkeys(name for m in data.machines for name in m.facts))
    ours = [m.data.header.allocators.get(OURS, {}) for m in data.machines]
    described: list[tuple[str, Sequence[str | None]]] = [
        *((name, [m.facts.get(name) for m in data.machines]) for name in names),
        ("begun", [m.data.header.began for m in data.machines]),
        ("rounds", [str(m.data.rounds) for m in data.machines]),
        ("workloads", [str(len(m.data.workloads)) for m in data.machines]),
        ("Terrace's commit", [info.get("commit") for info in ours]),
        ("file", [m.path.name for m in data.machines]),
    ]
    rows = [[word(name), *map(word, facts)] for name, facts in described]
    return Table(["", *(m.label for m in data.machines)], rows, "machine", "The machines", "As each file says.")


def allocators(data: Merged) -> Table:
    rows = [[word(a), *(word(_version(m, a)) for m in data.machines)] for a in data.allocators]
    columns = ["allocator", *(m.label for m in data.machines)]
    return Table(columns, rows, "allocators", "The allocators", "Version, mode and settings of each.", OURS)


def _version(machine: Machine, allocator: str) -> str | None:
    """None where the machine does not have it."""
    info = machine.data.header.allocators.get(allocator)
    return None if info is None else "; ".join(filter(None, [version(info), info.get("mode"), info.get("settings")])) or "unknown"


def all_tables(data: Merged) -> list[Table]:
    present = [m for m in WORK_METRICS if any(one.data.known(m, "all") for one in data.machines)]
    also = alike(data)
    return [
        summary(data),
        *([also] if also else []),
        *(means(data, m) for m in (TIME, PEAK, SETTLED) if m in present),
        *(means(data, TIME, s) for s in GROUPS if s in data.sections),
        *(per_workload(data, m) for m in present),
        failures(data),
        allocators(data),
        machines(data),
    ]


def _score(machine: Machine, metric: Metric) -> str | None:
    found = machine.shared.against_others(metric)
    mean = machine.shared.mean_to_others(metric, "all")
    if mean is None:
        return None
    best = sum(x.ratio.middle <= WON for x in found.values())
    return (
        f"{machine.label}: {metric.title} {mean} of the best other allocator's, over {mean.count} workloads; the best, or within "
        f"{100 * (WON - 1):.0f} % of it, in {best}; more than {LOST:.2f} times the best other in {len(machine.shared.losses(metric))}."
    )


def _noise(machine: Machine) -> str | None:
    noise = machine.data.noise(TIME) if next(iter(machine.data.header.allocators)) == machine.data.reference else None
    if noise is None:
        return None
    return f"{machine.label}: single workloads whose times differ by less than {percent(noise - 1)} show nothing."


def _unequal(data: Merged) -> Iterator[str]:
    """What is not the same on all machines, and so may be the reason of a difference."""
    for name in data.allocators:
        absent = [m.label for m in data.machines if name not in m.data.allocators]
        if absent:
            yield f"{name} was not measured on {'; '.join(absent)}."
        key = "commit" if name == OURS else "version"
        found = [m.data.header.allocators[name].get(key) or "unknown" for m in data.machines if name in m.data.allocators]
        if len(set(found)) > 1 and name != data.reference:
            yield f"{name} is not the same everywhere: {', '.join(found)}."
    for machine in data.machines:
        lacking = [w for w in data.workloads if w not in machine.data.workloads]
        if lacking:
            some = ", ".join(lacking[:5]) + (", ..." if len(lacking) > 5 else "")
            yield f"{machine.label} has not measured {len(lacking)} of {len(data.workloads)} workloads ({some}); they are in no mean."
        if machine.data.rounds < ENOUGH:
            yield f"{machine.label}: fewer than {ENOUGH} rounds, an interval is all values from the smallest to the largest."


def sentences(data: Merged) -> Iterator[str]:
    for metric in (TIME, PEAK, SETTLED):
        yield from filter(None, (_score(m, metric) for m in data.machines))
    if not data.sections:
        yield "No workload was measured on all machines, so there is no mean."
    yield from _unequal(data)
    yield from filter(None, map(_noise, data.machines))
