# SPDX-License-Identifier: MIT OR Apache-2.0
"""Measures what a store does not have yet, round by round.

Within a round every workload runs under each allocator before the next workload begins, so that the runs a ratio is made of are
close in time; the first allocator runs twice. The order is drawn for each workload and round, so that nobody always runs after the
same other and finds what that one has left; it is the same in each campaign. What reads files has one run before that does not
count: minutes after the last one its files may be on disk only, and whoever begins would wait for them.
"""

from __future__ import annotations

import os
import random
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from interleave import AGAIN, Subject
from store import LATENCY, WORK, Key, Measurement, Store
from terminal import BarColumn, Console, MofNCompleteColumn, Progress, TextColumn
from workload import Failed, Workload

GIVE_UP = 2  # failures of a workload under an allocator, after which it is not tried again: some take minutes to fail


@dataclass(frozen=True)
class Plan:
    workloads: Sequence[Workload]
    subjects: Sequence[Subject]  # the reference first
    rounds: int
    latency_rounds: int


@dataclass(frozen=True)
class Step:
    key: Key
    workload: Workload
    subject: Subject


def steps(plan: Plan) -> Iterator[Step]:
    turns = [*((s.name, s) for s in plan.subjects), (AGAIN, plan.subjects[0])]
    kinds = ((WORK, plan.rounds), (LATENCY, plan.latency_rounds))
    for r in range(max(plan.rounds, plan.latency_rounds)):
        for kind, rounds in kinds:
            for workload in plan.workloads:
                if r < rounds and (kind == WORK or workload.latency is not None):
                    for name, subject in random.Random(f"{kind} {workload.key} {r}").sample(turns, len(turns)):
                        yield Step(Key(kind, workload.key, name, r), workload, subject)


class Pace:
    """How long the rest will take, from what it took so far: of the same step, else of the same workload, else of anything."""

    def __init__(self, results: Sequence[Measurement]) -> None:
        self._seen: dict[tuple[str, ...], list[float]] = defaultdict(list)
        for measurement in results:
            self.add(measurement)

    @staticmethod
    def _names(key: Key) -> list[tuple[str, ...]]:
        return [(key.kind, key.workload, key.allocator), (key.kind, key.workload), (key.workload,), ()]

    def add(self, measurement: Measurement) -> None:
        for name in self._names(measurement.key):
            self._seen[name].append(measurement.took)

    def left(self, keys: Sequence[Key]) -> float | None:
        if not self._seen:
            return None
        means = {name: statistics.fmean(took) for name, took in self._seen.items()}
        return sum(next(means[n] for n in self._names(key) if n in means) for key in keys)


class Scratch:
    """A directory per workload's name, prepared when it is first needed; a preparation that failed is not tried again."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._ready: dict[str, Path | Failed] = {}

    def of(self, workload: Workload) -> Path:
        if workload.name not in self._ready:
            path = self._root / workload.name.replace("/", "_")
            path.mkdir()
            try:
                workload.prepare(path)
                self._ready[workload.name] = path
            except (Exception, SystemExit) as error:
                self._ready[workload.name] = Failed(f"preparation: {reason(error)}")
        found = self._ready[workload.name]
        if isinstance(found, Failed):
            raise found
        return found


def reason(error: BaseException) -> str:
    """In one line: what a workload says itself, or what went wrong in its module."""
    text = " ".join(str(error).split())[:300] or "no reason given"
    return text if isinstance(error, Failed | SystemExit) else f"{type(error).__name__}: {text}"


def _measured(step: Step, scratch: Scratch) -> Measurement:
    """A workload whose module breaks has failed like one whose program does: hours of others are not lost for it."""
    begin = time.monotonic()
    try:
        directory = scratch.of(step.workload)
        begin = time.monotonic()  # the preparation is not part of what the next round will take
        measure = step.workload.latency if step.key.kind == LATENCY else step.workload.measure
        assert measure is not None
        values = measure(step.subject, directory)
        return Measurement(step.key, {k: float(v) for k, v in values.items()}, took=time.monotonic() - begin)
    except (Exception, SystemExit) as error:
        return Measurement(step.key, failed=reason(error), took=time.monotonic() - begin)


@dataclass
class Failures:
    """Of a workload under an allocator, by kind."""

    counts: dict[tuple[str, str, str], int] = field(default_factory=lambda: defaultdict(int))

    def add(self, measurement: Measurement) -> None:
        key = measurement.key
        self.counts[key.kind, key.workload, key.allocator] += bool(measurement.failed)

    def given_up(self, key: Key) -> bool:
        return self.counts.get((key.kind, key.workload, key.allocator), 0) >= GIVE_UP


class WarmUp:
    """A run that does not count, before the first one of a workload in a round. Micro benchmarks read nothing."""

    def __init__(self, reference: Subject, scratch: Scratch) -> None:
        self._reference, self._scratch = reference, scratch
        self._last: tuple[str, int] | None = None

    def before(self, step: Step) -> None:
        turn = (step.workload.key, step.key.round)
        if turn != self._last and step.workload.group != "micro":
            _measured(Step(step.key, step.workload, self._reference), self._scratch)  # if it fails the next one tells
        self._last = turn


def duration(seconds: float | None) -> str:
    if seconds is None:
        return "?"
    minutes = round(seconds / 60)
    return f"{seconds:.0f} s" if seconds < 90 else f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02} min"


def measure_all(plan: Plan, store: Store, console: Console, retry: bool = False) -> None:
    """All steps the store lacks; with `retry` also those that failed."""
    everything = list(steps(plan))
    todo = [s for s in everything if not store.has(s.key) or (retry and store.results[s.key].failed)]
    pace, failures = Pace(list(store.results.values())), Failures()
    for measurement in () if retry else store.results.values():
        failures.add(measurement)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[left]}"))
    with tempfile.TemporaryDirectory(prefix="terrace-compare-") as root, Progress(*columns, console=console, transient=True) as bar:
        os.chmod(root, 0o755)  # servers that refuse to be root have to get in
        scratch = Scratch(Path(root))
        warm_up = WarmUp(plan.subjects[0], scratch)
        task = bar.add_task("", total=len(everything), completed=len(everything) - len(todo), left="")
        for i, step in enumerate(todo):
            if not failures.given_up(step.key):
                left = duration(pace.left([s.key for s in todo[i:]]))
                bar.update(
                    task, description=f"round {step.key.round + 1}: {step.workload.key} {step.subject.name}", left=f"{left} left"
                )
                warm_up.before(step)
                measurement = _measured(step, scratch)
                store.add(measurement)
                pace.add(measurement)
                failures.add(measurement)
                _tell(console, measurement)
            bar.advance(task)
            _tell_round(console, todo, i, pace)


def _tell(console: Console, measurement: Measurement) -> None:
    if measurement.failed:
        key = measurement.key
        console.print(
            f"failed: {key.workload} under {key.allocator} (round {key.round + 1}): {measurement.failed}",
            markup=False,
            highlight=False,
        )


def _tell_round(console: Console, todo: Sequence[Step], i: int, pace: Pace) -> None:
    """In a log, where no bar moves, a line per round."""
    last = i + 1 == len(todo)
    if last or todo[i + 1].key.round != todo[i].key.round:
        left = "" if last else f"; {duration(pace.left([s.key for s in todo[i + 1 :]]))} left"
        console.print(f"round {todo[i].key.round + 1} is done{left}", highlight=False)
