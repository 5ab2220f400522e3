# SPDX-License-Identifier: MIT OR Apache-2.0
"""The core level beside a thread level: the same library with plain code instead of restartable sequences."""

import os

import google_benchmark as gb
from interleave import AGAIN, interleaved, measured, median, preloaded, ratio
from report import Report, arguments


def main(argv: list[str]) -> int:
    options = arguments(__doc__, argv, rounds=25)
    plain = options.build / "bench" / "micro" / "libterrace_plain.so"
    if not plain.exists():
        print("the library with plain code is built on x86-64 only")
        return 0
    subjects = [preloaded("thread", plain.resolve()), preloaded("core", options.library)]
    program = options.build / "bench" / "micro" / "bench_pairs"
    seconds = 0.001 if options.smoke else 0.05
    one_cpu = {max(os.sched_getaffinity(0))}
    results = measured(options, "levels", lambda: interleaved(subjects, options.rounds, lambda s: gb.measure(s, program, "pairs.*threads:1$", seconds, one_cpu)))

    report = Report("levels", options.out)
    report.say("Time of a pair of malloc and free on one thread, core level / thread level, median of the rounds (quartiles).")
    keys = list(results["core"][0])
    rows = [
        [
            "{1} bytes, batches of {2}".format(*key.split("/")),
            f"{median(results, 'thread', key):.2f}",
            f"{median(results, 'core', key):.2f}",
            ratio(results, "core", key, "thread"),
            ratio(results, AGAIN, key, "thread"),
        ]
        for key in keys
    ]
    report.table(["pairs", "thread ns", "core ns", "ratio", "A/A"], rows)
    report.close()
    return 0
