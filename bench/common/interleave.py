# SPDX-License-Identifier: MIT OR Apache-2.0
"""One program under several allocators, in alternating order, and medians of the ratios within each round.

A shared machine drifts by tens of percent within minutes. So the allocators take turns within a round, the ratio is taken
within the round, and the first allocator runs twice: the ratio of its two runs is the noise.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from terminal import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


@dataclass(frozen=True)
class Subject:
    """An allocator: a name and what the environment has to say for a program to run on it."""

    name: str
    environment: dict[str, str] = field(default_factory=dict)


AGAIN = "again"  # the first subject's second run


@dataclass(frozen=True)
class Spread:
    median: float
    low: float  # quartiles
    high: float

    def __str__(self) -> str:
        return f"{self.median:.2f} ({self.low:.2f}-{self.high:.2f})"


def spread(values: Iterable[float]) -> Spread:
    data = sorted(values)
    if len(data) < 2:
        return Spread(data[0], data[0], data[0])
    low, middle, high = statistics.quantiles(data, n=4, method="inclusive")
    return Spread(middle, low, high)


def glibc() -> Subject:
    return Subject("glibc")


def preloaded(name: str, library: Path, **environment: str) -> Subject:
    if not library.exists():
        raise SystemExit(f"there is no {library}; build the release preset first")
    return Subject(name, {"LD_PRELOAD": str(library), **environment})


def run(subject: Subject, command: Sequence[str], cpus: set[int] | None = None) -> str:
    environment = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD" and not k.startswith("TERRACE_")}
    environment.update(subject.environment)
    before = (lambda: os.sched_setaffinity(0, cpus)) if cpus else None
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=False, preexec_fn=before)
    if done.returncode != 0:
        raise SystemExit(f"{subject.name}: {' '.join(command)} ended with {done.returncode}")
    return done.stdout


Values = dict[str, float]
Rounds = dict[str, list[Values]]  # by name of the subject, or AGAIN


def interleaved(
    subjects: Sequence[Subject],
    rounds: int,
    measure: Callable[[Subject], Values],
) -> Rounds:
    """Each round begins with another subject; the first one is measured a second time at the round's end."""
    results: Rounds = {s.name: [] for s in subjects} | {AGAIN: []}
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, transient=True) as progress:
        task = progress.add_task("", total=rounds * (len(subjects) + 1))
        for r in range(rounds):
            order = [*subjects[r % len(subjects) :], *subjects[: r % len(subjects)]]
            for subject in order:
                progress.update(task, description=subject.name)
                results[subject.name].append(measure(subject))
                progress.advance(task)
            results[AGAIN].append(measure(subjects[0]))
            progress.advance(task)
    return results


def _over(a: float, b: float) -> float:
    """Very short runs count nothing at all: nothing over nothing is no difference."""
    if b == 0:
        return 1.0 if a == 0 else math.inf
    return a / b


def ratio(results: Rounds, ours: str, key: str, base: str, base_key: str | None = None) -> Spread:
    """Over the rounds in which both gave something."""
    pairs = ((a, b) for a, b in zip(results[ours], results[base], strict=True) if a and b)
    return spread(_over(a[key], b[base_key or key]) for a, b in pairs)


def median(results: Rounds, name: str, key: str) -> float:
    return statistics.median(v[key] for v in results[name] if v)


def measured(options: argparse.Namespace, name: str, measure: Callable[[], Rounds]) -> Rounds:
    """Measured now and kept as NAME.json, or, with --stored, what an earlier run has kept."""
    path: Path = options.out / f"{name}.json"
    if getattr(options, "stored", False):
        if not path.exists():
            raise SystemExit(f"there is no {path}: run without --stored first")
        kept: Rounds = json.loads(path.read_text())
        return kept
    results = measure()
    path.write_text(json.dumps(results, indent=1) + "\n")
    return results


def names(results: Rounds) -> list[str]:
    """What was measured, in its order, without the second run of the first."""
    return [name for name in results if name != AGAIN]
