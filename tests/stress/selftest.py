#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Proves the oracle: on an allocator that is wrong on purpose the stress program must fail, and say why.

usage: selftest.py STRESS BROKEN_ALLOCATOR.so
"""

import os
import re
import subprocess
import sys

# fault -> what the one line on standard error must say; None: must pass
EXPECTED = {
    "none": None,
    "duplicate": r"was handed out twice|was damaged",
    "overlap": r"was handed out twice|was damaged",
    "corrupt": r"was damaged",
    "dirty": r"is not zero",
    "misaligned": r"is misaligned",
    "forgetful": r"after realloc: block .* was damaged",
    "short": r"has a usable size of",
}
OPERATIONS = 100000  # the rarest fault has 3,000 chances in them and takes every 100th. Not seconds: machines may be busy
TIMEOUT = 250  # seconds for one fault; all of them take 2 where nothing else runs


def run(stress, allocator, fault):
    environment = dict(os.environ, LD_PRELOAD=allocator, BROKEN=fault)
    environment.pop("TERRACE_RUNG", None)
    command = [stress, "--operations", str(OPERATIONS), "--threads", "4", "--seed", "7", "--size-limit", "65536"]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=TIMEOUT, check=False)


def verdict(result, pattern):
    """None if as expected, else what is wrong."""
    if pattern is None:
        return None if result.returncode == 0 else f"failed on the control: {result.stderr!r}"
    if result.returncode != 1:
        return f"status {result.returncode}, not 1: {result.stdout!r} {result.stderr!r}"
    if not re.fullmatch(r"(stress: .*\n)+", result.stderr) or not re.search(pattern, result.stderr):
        return f"said {result.stderr!r}, not {pattern!r}"
    return None


def main():
    stress, allocator = sys.argv[1:]
    failed = False
    for fault, pattern in EXPECTED.items():
        problem = verdict(run(stress, allocator, fault), pattern)
        print(f"{fault:12} {'as expected' if problem is None else problem}", flush=True)
        failed = failed or problem is not None
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
