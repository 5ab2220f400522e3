#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the test suites of other allocators try, against both libraries: the table of docs/security/threat-model.md.

usage: published.py --default LIBTERRACE.so --hardened LIBTERRACE-HARDENED.so --program PROGRAM --check PAGE | --write PAGE

Each test of published.c runs with a small and a large block, each several times, and has to end in the same way.
"""

import argparse
import os
import pathlib
import signal
import subprocess
import sys

BEGIN = "<!-- tests/misuse/published.py: begin -->\n"
END = "<!-- tests/misuse/published.py: end -->\n"
SMALL, LARGE = "100", "4194304"  # the second has pages of its own
# What lies before and behind a large block is by chance; whether its addresses are soon taken again depends on the time that
# passes before it is freed: after some milliseconds it joins its neighbours (docs/adr/0043).
SMALL_ONLY = {"overflow", "overflow_a_mebibyte", "underflow", "double_free_reuse"}
TIMES = 5
ENDS = {0: "harmless", 1: "no", -signal.SIGABRT: "stopped", -signal.SIGSEGV: "faults"}


def stay_on_one_cpu():
    """A thread that moves meets other free blocks."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def ending(library, program, name, size):
    """A word for the way it ends."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("TERRACE_")}
    environment.update(LD_PRELOAD=library, TERRACE_RUNG="thread")  # the one rung that is everywhere
    done = subprocess.run([program, name, size], env=environment, capture_output=True, text=True, timeout=60, check=False,
                          preexec_fn=stay_on_one_cpu)
    end = ENDS.get(done.returncode, f"status {done.returncode}")
    if (end == "stopped") != done.stderr.startswith("terrace: "):
        sys.exit(f"{name} {size}: {end}, and said: {done.stderr}")
    return end


def cell(library, program, name):
    """Of the small block, and of the large one where that is unlike."""
    each = []
    for size in (SMALL,) if name in SMALL_ONLY else (SMALL, LARGE):
        ends = {ending(library, program, name, size) for _ in range(TIMES)}
        each.append(ends.pop() if len(ends) == 1 else "by chance")
    return each[0] if len(set(each)) == 1 else f"{each[0]}; large: {each[1]}"


def table(options):
    lines = ["| test | default | hardened |\n", "|---|---|---|\n"]
    names = subprocess.run([options.program], capture_output=True, text=True, check=True).stdout.split()
    for name in names:
        cells = (cell(library, options.program, name) for library in (options.default, options.hardened))
        lines.append(f"| {name.replace('_', ' ')} | {' | '.join(cells)} |\n")
    return "".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for option in ("--default", "--hardened", "--program"):
        parser.add_argument(option, required=True)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--check", type=pathlib.Path, metavar="PAGE")
    what.add_argument("--write", type=pathlib.Path, metavar="PAGE")
    options = parser.parse_args()
    page = options.check or options.write
    text = page.read_text()
    before, rest = text.split(BEGIN)
    there, after = rest.split(END)
    made = table(options)
    if options.write:
        page.write_text(before + BEGIN + made + END + after)
    elif made != there:
        differ = sorted(set(made.splitlines()) ^ set(there.splitlines()))
        print(f"{page}: the table is not what happens; see published.py --write\n" + "\n".join(differ))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
