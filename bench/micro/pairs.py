# SPDX-License-Identifier: MIT OR Apache-2.0
"""Pairs of malloc and free, singly and in batches of 32, one thread and one per core, beside glibc."""

import os
from pathlib import Path

import google_benchmark as gb
from interleave import AGAIN, Spread, Subject, Values, glibc, interleaved, measured, median, preloaded, ratio, spread
from report import Report, arguments

SIZES = (16, 48, 256, 1024)
BATCHES = (1, 32)


def _measure(subject: Subject, program: Path, seconds: float) -> Values:
    """One thread in a process that never has another: glibc leaves out its atomic instructions there."""
    values = gb.measure(subject, program, "threads:1$", seconds)
    return values if os.cpu_count() == 1 else values | gb.measure(subject, program, "threads:([2-9]|1.)", seconds)


def _per_thread_throughput(results: dict[str, list[dict[str, float]]], name: str, key: str, cpus: int) -> Spread:
    """Of one thread among `cpus`, as a part of the single thread's."""
    return spread(v[f"{key}/threads:1"] / v[f"{key}/threads:{cpus}"] for v in results[name])


def main(argv: list[str]) -> int:
    options = arguments(__doc__, argv, rounds=15)
    cpus = os.cpu_count() or 1
    subjects = [glibc(), preloaded("terrace", options.library)]
    program = options.build / "bench" / "micro" / "bench_pairs"
    seconds = 0.001 if options.smoke else 0.05
    results = measured(options, "pairs", lambda: interleaved(subjects, options.rounds, lambda s: _measure(s, program, seconds)))

    report = Report("pairs", options.out)
    report.say("Time of a pair of malloc and free, terrace / glibc, median of the rounds (quartiles). Calls: two calls of functions "
               "in a shared object that do nothing / glibc, which no malloc can reach. A/A is glibc / glibc.")
    rows = []
    for threads in dict.fromkeys((1, cpus)):
        for size in SIZES:
            for batch in BATCHES:
                key = f"pairs/{size}/{batch}/threads:{threads}"
                rows.append([
                    f"{size} bytes, batches of {batch}, {threads} thread{'s' if threads > 1 else ''}",
                    f"{median(results, 'glibc', key):.2f}",
                    f"{median(results, 'terrace', key):.2f}",
                    ratio(results, "terrace", key, "glibc"),
                    ratio(results, "glibc", f"calls/{batch}/threads:{threads}", "glibc", key),
                    ratio(results, AGAIN, key, "glibc"),
                ])
    report.table(["pairs", "glibc ns", "terrace ns", "ratio", "calls", "A/A"], rows)

    if cpus > 1:
        report.say(f"Throughput of each of {cpus} threads as a part of a single thread's. The control is the same loop without malloc.")
        rows = []
        for batch in BATCHES:
            control = f"control/{batch}"
            rows += [
                [f"{size} bytes, batches of {batch}"]
                + [_per_thread_throughput(results, name, f"pairs/{size}/{batch}", cpus) for name in ("glibc", "terrace")]
                + [_per_thread_throughput(results, "terrace", control, cpus)]
                for size in SIZES
            ]
        report.table(["pairs", "glibc", "terrace", "control"], rows)
    report.close()
    return 0
