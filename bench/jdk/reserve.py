# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the buffers do, and what C2's prefetch reserve does that goes with them, in processor time: few threads that only allocate, and a
thousand that share a small young space."""

import argparse
from itertools import product

from allocation import APART, WAYS, apart
from cells import FOREGROUND, Cell, Experiment, Program, threads
from interleave import Rounds
from jvms import GROWING, KEPT, heap, tlab
from report import Report
from shown import PROCESSOR_RATE, details, noise, number, wasted_percent

BYTES = 48


def shapes(options: argparse.Namespace) -> dict[int, str]:
    """Threads, and the young space that they share."""
    return {threads(): "256m"} if options.smoke else {threads(): "256m", 1000: "16m"}


def sizings(options: argparse.Namespace) -> tuple[str, ...]:
    return ("4K",) if options.smoke else ("1K", "4K", "16K", GROWING)


def name(count: int, sizing: str, way: str) -> str:
    return f"{count} threads, TLAB {sizing}, {way}"


def cells(options: argparse.Namespace) -> list[Cell]:
    warm, measured = (0.3, 0.3) if options.smoke else (0.8, 0.8)
    found = []
    for (count, young), sizing, (way, (jvm, more)) in product(shapes(options).items(), sizings(options), WAYS.items()):
        flags = (*heap(young, "512m"), FOREGROUND, "-Xss256k", *tlab(sizing), *more)
        what = Program(("Objects", str(BYTES), str(count), str(warm), str(measured)), warm + measured + count / 1000)
        found.append(Cell(name(count, sizing, way), jvm, flags, what))
    return found


def report(options: argparse.Namespace, page: Report, results: Rounds) -> None:
    page.head("The buffers, and the missing prefetch reserve")
    page.say(f"Objects of {BYTES} bytes for a second of processor time of the whole process, its collections included; Parallel. C2 keeps 576 bytes "
             f"at the end of each TLAB for its prefetching, but not with the buffers on. {KEPT}: the buffers alone. "
             f"A/A: {noise(results, PROCESSOR_RATE)}.")
    rows = []
    for (count, young), sizing in product(shapes(options).items(), sizings(options)):
        ways = [name(count, sizing, way) for way in WAYS]
        rows.append([f"{count} threads, young space {young}, TLAB {sizing}", *apart(results, ways, PROCESSOR_RATE),
                     " / ".join(number(wasted_percent(results, way)) for way in ways)])
    page.table(["", *APART, "wasted, %: " + " / ".join(WAYS)], rows)
    details(page, results, 1e6, "M/s")


EXPERIMENT = Experiment("reserve", cells, report)
