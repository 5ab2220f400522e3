# SPDX-License-Identifier: MIT OR Apache-2.0
"""Measures what a store does not have yet, round by round.

Within a round every workload runs under each allocator before the next workload begins, so that the runs a ratio is made of are
close in time; the first allocator runs twice. The order is drawn for each workload and round, so that nobody always runs after the
same other and finds what that one has left; it is the same in each campaign. What reads files has one run before that does not
count: minutes after the last one its files may be on disk only, and whoever begins would wait for them.
"""

import os
import random
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from interleave import AGAIN, Subject
from store import LATENCY, WORK, Key, Measurement, Store
from terminal import BarColumn, Console, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from workload import Failed, Workload

PERIOD = 3600  # seconds, over which the time that is left is reckoned: workloads differ, rounds do not
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


def _who(key: Key) -> tuple[str, str, str]:
    """Whose failures are counted together."""
    return key.kind, key.workload, key.allocator


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


def measure_all(plan: Plan, store: Store, console: Console, retry: bool = False) -> None:
    """All steps the store lacks; with `retry` also those that failed."""
    everything = list(steps(plan))
    todo = [s for s in everything if not store.has(s.key) or (retry and store.results[s.key].failed)]
    failures = Counter(_who(m.key) for m in store.results.values() if m.failed and not retry)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=console, transient=True, speed_estimate_period=PERIOD)
    with tempfile.TemporaryDirectory(prefix="terrace-compare-") as root, bar:
        os.chmod(root, 0o755)  # servers that refuse to be root have to get in
        scratch = Scratch(Path(root))
        warm_up = WarmUp(plan.subjects[0], scratch)
        task = bar.add_task("", total=len(everything), completed=len(everything) - len(todo))
        for step, after in zip(todo, [*todo[1:], None], strict=False):
            if failures[_who(step.key)] < GIVE_UP:
                bar.update(task, description=f"round {step.key.round + 1}: {step.workload.key} {step.subject.name}")
                warm_up.before(step)
                measurement = _measured(step, scratch)
                store.add(measurement)
                failures[_who(step.key)] += bool(measurement.failed)
                _tell(console, measurement)
            bar.advance(task)
            if after is None or after.key.round != step.key.round:  # in a log, where no bar moves
                console.print(f"round {step.key.round + 1} is done", highlight=False)


def _tell(console: Console, measurement: Measurement) -> None:
    if measurement.failed:
        key = measurement.key
        console.print(
            f"failed: {key.workload} under {key.allocator} (round {key.round + 1}): {measurement.failed}",
            markup=False,
            highlight=False,
        )
