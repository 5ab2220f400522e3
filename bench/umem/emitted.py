# SPDX-License-Identifier: MIT OR Apache-2.0
"""malloc and free generated at start, as the article's libumem had them, beside functions that read a table."""

import argparse
import json

from interleave import Subject, Values, run as run_program, spread
from report import Report

MEANING = {
    "table": "the library's functions: addresses and limits from memory, the class from a table",
    "generated": "addresses, offsets and limits in the instructions",
    "compares": "and the class by comparing the size with one constant after the other",
    "jump": "`generated`, by way of a jump through memory",
}
SIZES = (16, 100, 256)


def _measure(options: argparse.Namespace) -> Values:
    program = str(options.build / "bench" / "umem" / "bench_umem_generated")
    milliseconds, turns = ("1", "1") if options.smoke else ("4", "101")
    said: Values = json.loads(run_program(Subject("terrace"), [program, milliseconds, turns, *map(str, SIZES)]))
    return said


def run(options: argparse.Namespace, page: Report) -> None:
    page.head("Generated code")
    rounds = [_measure(options) for _ in range(options.rounds)]
    if not rounds[0]:
        page.say("Not measured: there are no sequences here for which code is generated.")
        return
    page.say("A pair of malloc and free called through a pointer: nanoseconds, and over `table` (quartiles of the rounds).")
    rows: list[list[object]] = []
    for name, meaning in MEANING.items():
        cells: list[object] = []
        for size in SIZES:
            took = spread(r[f"{name}/{size}"] for r in rounds)
            ratio = spread(r[f"{name}/{size}"] / r[f"table/{size}"] for r in rounds)
            cells.append(f"{took.median:.2f}, {ratio}")
        rows.append([f"{name}: {meaning}", *cells])
    page.table(["code", *(f"{size} bytes" for size in SIZES)], rows)
