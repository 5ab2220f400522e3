# SPDX-License-Identifier: MIT OR Apache-2.0
"""Measurements that nobody made, of known proportions: a store as a run of the comparison would leave it."""

import json
import random
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench" / "compare"), str(ROOT / "bench" / "common")]

from store import FORMAT, LATENCY, WORK, Header, Key, Measurement, Store

FACTOR = {"glibc": 1.0, "terrace": 0.75, "left": 0.9, "middle": 1.0, "right": 1.3}  # of glibc's time
WORKLOADS = {
    f"{name}/{threads}": {"name": name, "group": group, "threads": threads}
    for group, names, counts in (
        ("micro", ("churn", "ring", "sleepers"), (1, 4)),
        ("threads", ("churn",), (2, 8)),
        ("trace", ("browser", "compiler"), (1,)),
        ("program", ("database", "interpreter", "server"), (1,)),
    )
    for name in names
    for threads in counts
}
BROKEN = ("server/1", "right")
REASON = "ended with -11: a <script>alert(1)</script> in its output"


def header() -> Header:
    allocators = {name: {"version": "1.0", "mode": "", "settings": "", "hash": f"hash-of-{name}"} for name in FACTOR}
    facts = {f"allocator {name}": f"hash-of-{name}" for name in FACTOR}
    return Header(facts, allocators, WORKLOADS, {"processor": "made up", "cores": "4", "kernel": "Linux"}, "2020-01-01 00:00 UTC")


def measurements(rounds: int, noise: float) -> Iterator[Measurement]:
    source = random.Random(7)
    for r in range(rounds):
        speed = source.uniform(0.8, 1.25)  # the machine's, this round: ratios do not show it
        for number, (workload, info) in enumerate(WORKLOADS.items()):
            for name in [*FACTOR, "again"]:
                factor = FACTOR.get(name, 1.0) * speed * source.uniform(1 - noise, 1 + noise)
                if (workload, name) == BROKEN:
                    yield Measurement(Key(WORK, workload, name, r), failed=REASON, took=1)
                    continue
                seconds = factor * (0.2 + number / 10)
                values = {
                    "seconds": seconds,
                    "cpu_seconds": seconds * info["threads"],
                    "peak_rss": 2**25 / factor,
                    "faults": 9000,
                    "settled_rss": 2**24 * factor,
                    "operations": 1e7 * info["threads"],
                }
                yield Measurement(Key(WORK, workload, name, r), values, took=seconds)
                if info["group"] == "micro":
                    tails = {
                        f"{call}_p{digits}": 20 * factor * tail
                        for call in ("malloc", "free")
                        for digits, tail in (("50", 1), ("99", 6), ("999", 90))
                    }
                    yield Measurement(Key(LATENCY, workload, name, r), tails, took=seconds)


def stored(path: Path, rounds: int = 7, noise: float = 0.03, told: Header | None = None) -> Store:
    """`told`: a header that may know fewer allocators and workloads, and then what it lacks was not measured."""
    head = told or header()
    lines = [{"format": FORMAT, "header": asdict(head)}]
    for measurement in measurements(rounds, noise):
        if measurement.key.allocator in (*head.allocators, "again") and measurement.key.workload in head.workloads:
            lines.append(asdict(measurement))
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))  # a store waits for the disk after each of them
    return Store(path)
