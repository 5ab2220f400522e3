#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Programs in surroundings that are not quite as usual: each must run on Terrace as it does on glibc's malloc.

usage: driver.py --list
       driver.py --preload LIBTERRACE.so --programs DIRECTORY [CASE ...]
"""

import argparse
import os
import sys
import time

import cases
from harness import Failure, Harness, Skip

SKIP = 77


def run_case(harness, name):
    """passed, skipped or FAILED"""
    start = time.monotonic()
    try:
        cases.ALL[name](harness)
        verdict = "passed"
    except Skip as reason:
        verdict = f"skipped: {reason}"
    except (Failure, ValueError, OSError) as problem:
        verdict = f"FAILED: {problem}"
    print(f"{name}: {verdict} ({time.monotonic() - start:.1f} s)", flush=True)
    return verdict.split(":")[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--list", action="store_true", help="print the names of all cases")
    parser.add_argument("--preload")
    parser.add_argument("--programs")
    parser.add_argument("cases", nargs="*", help="all if none is given")
    options = parser.parse_args()
    if options.list:
        print("\n".join(cases.ALL))
        return 0
    harness = Harness(os.path.abspath(options.preload), os.path.abspath(options.programs))
    verdicts = {run_case(harness, name) for name in options.cases or cases.ALL}
    if "FAILED" in verdicts:
        return 1
    return SKIP if verdicts == {"skipped"} else 0


if __name__ == "__main__":
    sys.exit(main())
