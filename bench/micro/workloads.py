# SPDX-License-Identifier: MIT OR Apache-2.0
"""The workloads of the literature on allocators: fixed work each, by one thread and by one per core."""

import os
from dataclasses import dataclass, replace
from pathlib import Path

from workload import Workload, self_measured

SLEEPERS = (1000, 10_000)
SCALED = ("larson", "xmalloc", "rptest", "sh8", "alloc_test", "handover")


@dataclass(frozen=True)
class Program:
    """A workload of bench_micro, and what it says beyond time and memory."""

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


def _workload(build: Path, program: Program, group: str, threads: int, scale: float) -> Workload:
    """The latencies by a shorter run of its own, because the clock that they take slows everything."""
    start = (build, "micro/bench_micro", program.name, f"threads={threads}")
    measure = self_measured(*start, f"work={scale}", f"settled={int(program.settles)}")
    latency = self_measured(*start, f"work={scale / 4}", "latency=1") if program.latencies else None
    return Workload(program.name, group, threads, measure, latency=latency)


def _sleepers(build: Path, threads: int) -> Workload:
    measure = self_measured(build, "seeds/bench_sleepers", f"threads={threads}", "settled=1")
    return Workload("sleepers", "micro", threads, measure)


def _cores() -> int:
    return len(os.sched_getaffinity(0))


def workloads(build: Path, seconds_scale: float = 1.0) -> list[Workload]:
    """With a scale of 1 a workload takes some tenths of a second per thread, beside the second after which memory is looked at."""
    return [
        _workload(build, program, "micro", threads, seconds_scale)
        for program in PROGRAMS
        for threads in sorted({1, _cores()})
    ] + [_sleepers(build, threads) for threads in SLEEPERS]


def scaling(build: Path, seconds_scale: float = 1.0) -> list[Workload]:
    """Some of the same with further numbers of threads, for the throughput by threads; they count in no mean."""
    further = sorted({2, 2 * _cores()} - {1, _cores()})
    chosen = [program for program in PROGRAMS if program.name in SCALED]
    # What is settled is known from the others.
    return [replace(_workload(build, replace(program, settles=False), "threads", threads, seconds_scale), latency=None)
            for program in chosen for threads in further]
