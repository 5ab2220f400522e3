#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""The table of docs/guide/misuse.md, from the expectations of the tests.

usage: table.py --check PAGE | --write PAGE      the lines between the two comments that name this program
"""

import pathlib
import sys

import cases

BEGIN = "<!-- tests/misuse/table.py: begin -->\n"
END = "<!-- tests/misuse/table.py: end -->\n"

# Rows whose report comes later than the call that is wrong, and when that is.
LATER = {
    ("interior pointer, multiple of 16", "default"): "when the block reaches its slab",
    ("interior pointer, then malloc", "default"): "when the block reaches its slab",
    ("double free, both in a magazine", "default"): "when the magazine leaves the core",
    ("double free, after other frees", "default"): "when both copies reach their slab",
    ("double free, after malloc_trim", "default"): "when it reaches its slab",
    ("double free, by another thread", "default"): "at once, or when both copies reach their slab",
    ("double free, two threads in one instant", "default"): "when both copies reach their slab",
    ("write after free, first word", "check"): "when it leaves the quarantine",
    ("write after free, elsewhere", "check"): "when it leaves the quarantine",
    ("write after free, large block", "check"): "when it leaves the quarantine",
    ("write after free, first word", "hardened"): "at malloc, or on the way to the slab",
    ("write after free, elsewhere", "hardened"): "at malloc",
    **{(f"{what}, {size} block", "check"): "when it is freed, resized or swept" for what in ["overflow", "underflow"]
       for size in ["small", "large"]},
}
# What is right, or not the program's mistake.
NO_MISUSE = {"sized delete, right", "nothing to read in free blocks, no order"}
ALWAYS = {"negative and huge sizes": "null and `ENOMEM`, or the exception"}


def cell(kind, level, those):
    if kind in ALWAYS:
        return ALWAYS[kind]
    expected = [c.expected(level) for c in those if c.expected(level) is not None]
    if not expected:
        return "-"
    caught = sum(text != cases.UNNOTICED for text in expected)
    if caught == 0:
        return "no"
    when = LATER.get((kind, level), "at once")
    return when if caught == len(expected) else f"{when}, {caught} of {len(expected)}"


def table():
    kinds = {}
    for case in cases.all_cases():
        if case.kind not in NO_MISUSE:
            kinds.setdefault(case.kind, []).append(case)
    names = {"default": "default", "check": "`TERRACE_CHECK=1`", "hardened": "hardened"}
    lines = ["| misuse | " + " | ".join(names[level] for level in cases.LEVELS) + " | cases |\n"]
    lines.append("|---|" + "---|" * len(cases.LEVELS) + "---|\n")
    for kind, those in kinds.items():
        row = [kind, *(cell(kind, level, those) for level in cases.LEVELS), str(len(those))]
        lines.append("| " + " | ".join(row) + " |\n")
    return "".join(lines)


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in ["--check", "--write"]:
        print(__doc__)
        return 2
    page = pathlib.Path(sys.argv[2])
    text = page.read_text()
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    wanted = before + BEGIN + table() + END + after
    if sys.argv[1] == "--write":
        page.write_text(wanted)
    elif text != wanted:
        print(f"{page}: the table is not what tests/misuse/cases.py says; run tests/misuse/table.py --write {page}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
