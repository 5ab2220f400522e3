#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs every misuse and checks how the process dies: SIGABRT and exactly one line on standard error, which names the pointer.

usage: driver.py --preload LIBTERRACE.so --programs DIRECTORY [--rung RUNG] [--placement PLACEMENT] [CASE ...]

What is caught when (this is the contract, docs/guide/ has it for users):
  at once      double frees as long as the block has not been handed out again, large blocks, pointers outside of all
               blocks, pointers that are not multiples of 16, realloc and malloc_usable_size of what is not a block
  later        multiples of 16 inside a block, two threads that free at the same instant: when the block reaches the
               global level; so the programs end with malloc_trim(0), which sends everything there
  at malloc    a free block whose first word was overwritten: when it is about to be handed out
  never        a write to another part of a free block; a second free after the block has a new owner
"""

import argparse
import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass

SKIP = 77
TIMEOUT = int(os.environ.get("TERRACE_TEST_TIMEOUT", "60"))  # seconds; emulated machines need longer

DOUBLE_FREE = r"terrace: free\(\): double free of {pointer}\n"
INVALID_FREE = r"terrace: free\(\): invalid pointer {pointer}\n"
WRITTEN = r"terrace: malloc\(\): block {pointer} was written after it was freed\n"
INVALID_REALLOC = r"terrace: realloc\(\): invalid pointer {pointer}\n"
INVALID_USABLE = r"terrace: malloc_usable_size\(\): invalid pointer {pointer}\n"
# A large block that is freed is nothing: its addresses may be part of another one already.
FREE_OF_NOTHING = r"terrace: free\(\): (double free of|invalid pointer) {pointer}\n"
# What realloc finds depends on whether it would move: both names are true.
REALLOC_OF_FREED = r"terrace: (realloc|free)\(\): (double free of|invalid pointer) {pointer}\n"
# Threads that free a block in the same instant may both find it live; what is found then is the second push over the first.
RACE = r"terrace: (free\(\): double free of|(malloc|free)\(\): block) {pointer}( was written after it was freed)?\n"
WRITTEN_ANYWHERE = r"terrace: (malloc|free|malloc_trim)\(\): block {pointer} was written after it was freed\n"
ANY_POINTER = r"0x[0-9a-f]+"

SMALL = ["1", "16", "24", "48", "100", "250", "1010", "4096", "20000", "30000"]
LARGE = ["40000", "131072", "1048576", "67108864"]


@dataclass
class Case:
    program: str
    arguments: list
    says: str  # regular expression of all of standard error; {pointer}: what the program announced. "": nothing
    status: int = -signal.SIGABRT
    names_pointer: bool = True


def all_cases():
    for size in SMALL:
        yield Case("double_free", [size], DOUBLE_FREE)
        yield Case("double_free_after_others", [size], DOUBLE_FREE)
        yield Case("double_free_after_trim", [size], FREE_OF_NOTHING)
        yield Case("double_free_across_threads", [size], DOUBLE_FREE)
    for size in LARGE:
        yield Case("double_free", [size], FREE_OF_NOTHING)
        yield Case("double_free_across_threads", [size], FREE_OF_NOTHING)
        yield Case("double_free_after_trim", [size], FREE_OF_NOTHING)
    yield Case("double_free_race", ["24"], RACE, names_pointer=False)
    yield Case("double_free_race", ["2000"], RACE, names_pointer=False)
    for size, offset in [("256", "1"), ("256", "8"), ("16", "8"), ("5000", "4088"), ("30000", "17")]:
        yield Case("free_interior", [size, offset], INVALID_FREE)  # misaligned: at once
    for size, offset in [("256", "16"), ("48", "32"), ("5000", "4096"), ("30000", "16"), ("1010", "512")]:
        yield Case("free_interior", [size, offset], INVALID_FREE)
    for size, offset in [("40000", "1"), ("40000", "16"), ("1048576", "4096"), ("1048576", "65536"), ("1048576", "1048560")]:
        yield Case("free_interior", [size, offset], INVALID_FREE)
    for program in ["free_stack", "free_static", "free_foreign"]:
        yield Case(program, [], INVALID_FREE)
    for number in ["1", "16", "4096", "0x1000000000", "0x7fffffffffff", "0x800000000000", "0x4141414141414140",
                   "0xfffffffffffffff0"]:
        yield Case("free_number", [number], INVALID_FREE)
    for size in ["16", "48", "100", "1010", "20000"]:
        yield Case("write_after_free", [size], WRITTEN)
        if size != "20000":  # chains of two: the block that waits in one has 0 there anyway
            yield Case("write_after_free", [size, "0"], WRITTEN)
        yield Case("write_after_free", [size, "1"], WRITTEN)
        yield Case("write_after_free_then_trim", [size], WRITTEN_ANYWHERE)
    for size, wanted in [("48", "100"), ("48", "40"), ("48", "48"), ("48", "20"), ("1000", "10"), ("1000", "100000"),
                         ("20000", "0")]:
        yield Case("realloc_freed", [size, wanted], REALLOC_OF_FREED)
    for size, wanted in [("100000", "200000"), ("100000", "100"), ("1048576", "1048576")]:
        yield Case("realloc_freed", [size, wanted], REALLOC_OF_FREED)
    for which in ["stack", "static", "interior", "odd", "large"]:
        yield Case("realloc_wild", [which], INVALID_REALLOC)
    for which in ["stack", "interior"]:
        yield Case("usable_size_wild", [which], INVALID_USABLE)
    for which in ["plain", "array", "aligned"]:
        yield Case("double_delete", [which], DOUBLE_FREE)
    yield Case("double_free_without_stderr", [], "")
    yield Case("free_sized_wrong", [], "", status=0)


def stay_on_one_cpu():
    """A thread that moves between the write and malloc leaves the block in another slot's buffers."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def problem_of(case, result):
    """None if the process ended as the case wants, else what is wrong."""
    if result.returncode != case.status:
        return f"ended with {result.returncode} instead of {case.status}; standard error: {result.stderr!r}"
    pointer = ANY_POINTER
    if case.names_pointer and case.says:
        announced = re.fullmatch(r"misused (0x[0-9a-f]+)\n", result.stdout)
        if announced is None:
            return f"announced {result.stdout!r}"
        pointer = announced.group(1)
    if not re.fullmatch(case.says.format(pointer=pointer), result.stderr):
        return f"wrote {result.stderr!r} instead of {case.says.format(pointer=pointer)!r}"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--preload", required=True)
    parser.add_argument("--programs", required=True)
    parser.add_argument("--rung", default="mm_cid")
    parser.add_argument("--placement", default="punctuated")
    parser.add_argument("cases", nargs="*", help="names of programs; all if none is given")
    options = parser.parse_args()
    environment = dict(os.environ, LD_PRELOAD=options.preload, TERRACE_RUNG=options.rung, TERRACE_PLACEMENT=options.placement)
    environment.pop("TERRACE_STATS", None)

    # `true` allocates a little, so the rung has been decided.
    complaint = subprocess.run(["true"], env=environment, capture_output=True, text=True, check=False).stderr
    if complaint:
        print(complaint, end="")
        return SKIP if complaint.startswith("terrace: TERRACE_RUNG") else 1
    failed = passed = 0
    for case in all_cases():
        if options.cases and case.program not in options.cases:
            continue
        command = [os.path.join(options.programs, "misuse_" + case.program), *case.arguments]
        try:
            pinned = stay_on_one_cpu if case.program.startswith("write_after_free") else None
            result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=TIMEOUT, check=False,
                                    preexec_fn=pinned)
            problem = problem_of(case, result)
        except subprocess.TimeoutExpired:
            problem = "did not end"
        if problem is None:
            passed += 1
        else:
            failed += 1
            print(f"{case.program} {' '.join(case.arguments)}: {problem}", flush=True)
    print(f"{passed} as expected, {failed} not")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
