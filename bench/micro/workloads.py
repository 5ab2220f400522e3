# SPDX-License-Identifier: MIT OR Apache-2.0
"""The workloads of the literature on allocators: fixed work each, by one thread and by one per core."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "common"))

from interleave import Subject, Values
from workload import Workload, self_measured

LATENCIES = tuple(f"{call}_{part}" for call in ("malloc", "free") for part in ("p50", "p99", "p999"))
SLEEPERS = (1000, 10_000)


@dataclass(frozen=True)
class Program:
    """A program bench_NAME of this folder, and what its workload says beyond time and memory."""

    name: str
    settles: bool = True  # what remains after everything was freed means something
    latencies: bool = True  # single calls are what it is about


PROGRAMS = (
    Program("larson"),
    Program("cache_scratch", settles=False, latencies=False),
    Program("cache_thrash", settles=False, latencies=False),
    Program("xmalloc"),
    Program("sh6"),
    Program("sh8"),
    Program("rptest"),
    Program("mstress"),
    Program("alloc_test"),
    Program("large"),
    Program("calloc_realloc"),
    Program("aligned"),
    Program("sizes", settles=False, latencies=False),  # times of its own, by size
    Program("handover"),
    Program("simple"),
    Program("strings"),
)


def _measured(build: Path, program: Program, threads: int, scale: float) -> Callable[[Subject, Path], Values]:
    """Time and memory by one run; the latencies by a second, shorter one, because the clock that they take slows everything."""
    path = f"micro/bench_{program.name}"
    plain = self_measured(build, path, f"threads={threads}", f"work={scale}", f"settled={int(program.settles)}")
    timed = self_measured(build, path, f"threads={threads}", f"work={scale / 4}", "latency=1")

    def measure(subject: Subject, scratch: Path) -> Values:
        values = plain(subject, scratch)
        if program.latencies:
            latencies = timed(subject, scratch)
            values |= {key: latencies[key] for key in LATENCIES}
        return values

    return measure


def _sleepers(build: Path, threads: int) -> Workload:
    measure = self_measured(build, "seeds/bench_sleepers", f"threads={threads}", "settled=1")
    return Workload("sleepers", "micro", threads, measure)


def workloads(build: Path, seconds_scale: float = 1.0) -> list[Workload]:
    """With a scale of 1 a workload takes some tenths of a second per thread, beside the second after which memory is looked at."""
    counts = sorted({1, len(os.sched_getaffinity(0))})
    return [
        Workload(program.name, "micro", threads, _measured(build, program, threads, seconds_scale))
        for program in PROGRAMS
        for threads in counts
    ] + [_sleepers(build, threads) for threads in SLEEPERS]
