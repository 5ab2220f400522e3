# SPDX-License-Identifier: MIT OR Apache-2.0
"""Pairs of malloc and free alone, in batches, and first in first out, beside the other allocators."""

import argparse
import json
import math
from pathlib import Path

BENCH = Path(__file__).resolve().parent.parent

from allocators import GLIBC, TERRACE, subjects
from interleave import AGAIN, Rounds, Subject, Values, interleaved, measured, median, ratio, run
from report import Report, arguments

SIZES = (16, 256, 4096, 65536)
LOOPS = (("pairs", 1), ("batch", 16), ("batch", 100), ("batch", 10_000), ("fifo", 1000))
MOST = 100_000_000  # bytes in use: of the largest batches the largest blocks are left out
MILLISECONDS = 100
LONG = 2000  # of loops over much memory: what is kept for reuse rises by what was needed again


def _cases() -> dict[str, tuple[str, int, int]]:
    words = {"pairs": "one by one", "batch": "batches of {:,}", "fifo": "first in first out, {:,}"}
    return {f"{size:,} bytes, {words[loop].format(blocks)}": (loop, blocks, size)
            for loop, blocks in LOOPS for size in SIZES if blocks * size <= MOST}


def _measure(subject: Subject, program: Path, cases: dict[str, tuple[str, int, int]], smoke: bool) -> Values:
    values = {}
    for name, (loop, blocks, size) in cases.items():
        milliseconds = 1 if smoke else LONG if blocks * size > 10_000_000 else MILLISECONDS
        values[name] = json.loads(run(subject, [str(program), loop, str(blocks), str(size), str(milliseconds)]))["ns"]
    return values


def _rows(results: Rounds, others: list[str]) -> tuple[list[list[object]], float]:
    """And the geometric mean of the ratios."""
    rows: list[list[object]] = []
    logarithms = []
    for case in results[TERRACE][0]:
        best = min(others, key=lambda name: median(results, name, case))
        over = ratio(results, TERRACE, case, best)
        logarithms.append(math.log(over.median))
        rows.append([case, f"{median(results, TERRACE, case):.1f}", *(f"{median(results, name, case):.1f}" for name in others),
                     best, over, ratio(results, AGAIN, case, GLIBC)])
    return rows, math.exp(sum(logarithms) / len(logarithms))


def main(argv: list[str]) -> int:
    own = argparse.ArgumentParser(add_help=False)
    own.add_argument("--peers", type=Path, default=BENCH.parent / "build" / "peers")
    known, rest = own.parse_known_args(argv)
    options = arguments(f"{__doc__} --peers FOLDER: where `terrace bench peers` put them.", rest, rounds=7)
    program = options.build / "bench" / "micro" / "bench_loops"
    chosen = subjects(options.library, known.peers.resolve(), [GLIBC, TERRACE] if options.smoke else None)
    chosen = [s for s in chosen if s.name != "rpmalloc"]  # some loops take it minutes
    cases = _cases()
    results = measured(options, "loops", lambda: interleaved(chosen, options.rounds, lambda s: _measure(s, program, cases, options.smoke)))

    others = [s.name for s in chosen if s.name != TERRACE]
    rows, mean = _rows(results, others)
    report = Report("loops", options.out)
    report.say("Nanoseconds of malloc, a write of one byte, and free (CPU time), medians of the rounds; Terrace / the best of the others, "
               "median of the ratios within the rounds (quartiles); A/A is glibc / glibc.")
    report.table(["case", TERRACE, *others, "best", "ratio", "A/A"], rows)
    report.say(f"Geometric mean of the {len(rows)} ratios: {mean:.2f}.")
    report.close()
    return 0
