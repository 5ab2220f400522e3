# SPDX-License-Identifier: MIT OR Apache-2.0
"""Recorded programs of the comparison, replayed: their calls of malloc without the rest of their work."""

import struct
from collections.abc import Callable
from pathlib import Path

from interleave import Subject, Values
from recorded import RECORDED, Recorded
from recording import plan, plan_path
from workload import Workload, self_measured

LATENCIES = tuple(f"{call}_{part}" for call in ("malloc", "free") for part in ("p50", "p99", "p999"))
ENOUGH_CALLS = 5_000_000  # some tenths of a second


def _calls(path: Path) -> int:
    """The second word of a plan."""
    with path.open("rb") as file:
        return int(struct.unpack("<8xQ", file.read(16))[0])


def _measured(build: Path, recorded: Recorded, scale: float) -> Callable[[Subject, Path], Values]:
    """Time and memory by one run; the latencies by a second one, because the clock that they take slows everything."""
    path = plan_path(recorded, scale)

    def measure(subject: Subject, scratch: Path) -> Values:
        times = max(1, round(ENOUGH_CALLS * scale / max(1, _calls(path))))
        values = self_measured(build, "replay/bench_replay", str(path), f"times={times}", "settled=1")(subject, scratch)
        latencies = self_measured(build, "replay/bench_replay", str(path), "latency=1")(subject, scratch)
        values.pop("threads", None)  # those of the trace
        return values | {key: latencies[key] for key in LATENCIES}

    return measure


def _prepare(build: Path, recorded: Recorded, scale: float) -> Callable[[Path], None]:
    def prepare(_scratch: Path) -> None:
        plan(build, recorded, scale)

    return prepare


def workloads(build: Path, seconds_scale: float = 1.0) -> list[Workload]:
    """Those whose programs are there."""
    build = build.resolve()  # the recorded programs run in other directories
    return [
        Workload(f"trace-{r.name}", "trace", r.threads, _measured(build, r, seconds_scale), _prepare(build, r, seconds_scale))
        for r in RECORDED
        if not r.absent()
    ]


def missing() -> list[str]:
    """A line for each workload that is left out."""
    return [f"trace of {r.name}: no {', '.join(absent)}" for r in RECORDED if (absent := r.absent())]
