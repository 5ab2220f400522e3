#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Changed lines of the patch queue: added and removed ones, new files included; not blank lines and comments.

count_lines.py            a table
count_lines.py --limit N  exit status 1 when the buffers for Parallel and G1, the first five patches, have N or more
"""

import argparse
import pathlib

PATCHES = pathlib.Path(__file__).resolve().parent / "patches"
BUFFERS = 5  # patches of the buffers themselves, which the limit is for; the others can be left out
LIMIT = 250


def _in_block(text: str, inside: bool) -> tuple[bool, bool]:
    """Whether the line is (part of) a /* comment */ and nothing else, and whether the next one is in it."""
    if not inside and not text.startswith("/*"):
        return False, False
    return True, "*/" not in text


def code_lines(lines: list[str], makefile: bool = False) -> int:
    """Lines that are neither blank nor all comment. The \\ that continues a macro is no text."""
    count, inside = 0, False
    for line in lines:
        text = line.strip().removesuffix("\\").strip()
        comment, inside = (text.startswith("#"), False) if makefile else _in_block(text, inside)
        count += bool(text) and not comment and not text.startswith("//")
    return count


def changed(patch: str) -> tuple[int, int]:
    """Lines of code, and all lines, that a patch adds or removes."""
    code = total = 0
    sides: dict[str, list[str]] = {"+": [], "-": []}
    makefile = False

    def close() -> None:
        nonlocal code, total
        for lines in sides.values():
            code += code_lines(lines, makefile)
            total += len(lines)
            lines.clear()

    for line in patch.splitlines():
        if line.startswith(("--- ", "+++ ", "@@ ")):
            close()
            if line.startswith("+++ "):
                makefile = line.endswith((".gmk", ".m4"))
        elif line[:1] in sides:
            sides[line[0]].append(line[1:])
    close()
    return code, total


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit", type=int, default=None, metavar="N")
    options = parser.parse_args()
    print(f"{'patch':20} {'code':>5} {'all':>5}")
    sums, limited = [0, 0], 0
    for number, path in enumerate(sorted(PATCHES.glob("*.diff")), 1):
        counts = changed(path.read_text(encoding="utf-8"))
        print(f"{path.stem:20} {counts[0]:5} {counts[1]:5}")
        sums = [a + b for a, b in zip(sums, counts, strict=True)]
        if number == BUFFERS:
            limited = sums[0]
            print(f"{'Parallel and G1':20} {sums[0]:5} {sums[1]:5}")
    print(f"{'together':20} {sums[0]:5} {sums[1]:5}")
    return 1 if options.limit is not None and limited >= options.limit else 0


if __name__ == "__main__":
    raise SystemExit(main())
