# SPDX-License-Identifier: MIT OR Apache-2.0
"""Pairs of an allocation and a free by each of the names, and with more threads than cpus."""

import argparse
import json
from collections.abc import Sequence

from interleave import Spread, Subject, run as run_program, spread
from report import Report

Turns = dict[str, list[float]]

THREADS = (1, 2, 16)
LIMITS = {"umem_alloc": 1.05, "cache": 1.2}  # of malloc's time
FEWER, MANY, LEAST = 2, 16, 0.95  # threads, and what many do of the fewer ones' work
SIZES = (4, 64, 448)


def over(ours: Sequence[float], base: Sequence[float]) -> Spread:
    """Turn by turn."""
    return spread(a / b for a, b in zip(ours, base, strict=True))


def _measure(options: argparse.Namespace, size: int) -> Turns:
    program = str(options.build / "bench" / "umem" / "bench_umem_pairs")
    turns, milliseconds = (1, 2) if options.smoke else (4 * options.rounds + 1, 100)
    command = [program, str(milliseconds), str(turns), str(size), *map(str, THREADS)]
    said: Turns = json.loads(run_program(Subject("libumem_malloc"), command))
    return said


def _check(page: Report, size: int, values: Turns) -> None:
    for kind, limit in LIMITS.items():
        took = over(values["cpu/malloc/1"], values[f"cpu/{kind}/1"])
        page.check(f"{kind} of {size} bytes, time of a pair over malloc's", str(took), f"at most {limit}", took.median <= limit)
    for kind in ("malloc", *LIMITS):
        work = over(values[f"wall/{kind}/{MANY}"], values[f"wall/{kind}/{FEWER}"])
        page.check(f"{kind} of {size} bytes, work of {MANY} threads per second over {FEWER} threads'", str(work),
                   f"at least {LEAST}", work.median >= LEAST)


def run(options: argparse.Namespace, page: Report) -> None:
    page.head("Names")
    page.say("Nanoseconds of cpu time of a pair (quartiles of the turns), in one process, which has libumem_malloc.so; `cache` "
             "has a constructor and a destructor.")
    rows: list[list[object]] = []
    for size in SIZES[: 1 if options.smoke else None]:
        values = _measure(options, size)
        for kind in ("malloc", *LIMITS):
            cells = [str(spread(1000 / v for v in values[f"cpu/{kind}/{n}"])) for n in THREADS]
            rows.append([f"{kind}, {size} bytes", *cells])
        _check(page, size, values)
    page.table(["pair", *(f"{n} thread{'s' * (n > 1)}" for n in THREADS)], rows)
