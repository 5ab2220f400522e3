#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs every misuse and checks how the process ends: with which status, and what stands on standard error, to the letter.

usage: driver.py --preload LIBTERRACE.so --programs DIRECTORY [--level LEVEL] [--rung RUNG] [--placement PLACEMENT] [PROGRAM ...]
"""

import argparse
import os
import subprocess
import sys

import cases

SKIP = 77
WITH_THREADS = ["double_free_across_threads", "double_free_race"]
TIMEOUT = int(os.environ.get("TERRACE_TEST_TIMEOUT", "60"))  # seconds; emulated machines need longer


def stay_on_one_cpu():
    """A thread that moves leaves the blocks that it freed in another slot's buffers: what is found then, and when, is by chance."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def run(case, level, programs, environment):
    command = [os.path.join(programs, "misuse_" + case.program), *case.arguments]
    if level == "check":
        environment = dict(environment, TERRACE_CHECK=case.options)
    pinned = None if case.program in WITH_THREADS else stay_on_one_cpu
    try:
        result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=TIMEOUT, check=False,
                                preexec_fn=pinned)
    except subprocess.TimeoutExpired:
        return "did not end"
    return cases.problem_of(case, level, result)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--preload", required=True)
    parser.add_argument("--programs", required=True)
    parser.add_argument("--level", default="default", choices=cases.LEVELS)
    parser.add_argument("--rung", default="mm_cid")
    parser.add_argument("--placement", default="punctuated")
    parser.add_argument("only", nargs="*", help="names of programs; all if none is given")
    options = parser.parse_args()
    environment = dict(os.environ, LD_PRELOAD=options.preload, TERRACE_RUNG=options.rung, TERRACE_PLACEMENT=options.placement)
    for name in ["TERRACE_STATS", "TERRACE_CHECK"]:
        environment.pop(name, None)

    # `true` allocates a little, so the rung has been decided.
    complaint = subprocess.run(["true"], env=environment, capture_output=True, text=True, check=False).stderr
    if complaint:
        print(complaint, end="")
        return SKIP if complaint.startswith("terrace: TERRACE_RUNG") else 1
    failed = passed = 0
    for case in cases.all_cases():
        if (options.only and case.program not in options.only) or case.expected(options.level) is None:
            continue
        problem = run(case, options.level, options.programs, environment)
        if problem is None:
            passed += 1
        else:
            failed += 1
            print(f"{case.program} {' '.join(case.arguments)}: {problem}", flush=True)
    print(f"{passed} as expected, {failed} not")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
