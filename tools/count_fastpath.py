#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Counts the instructions on the fast paths of malloc and free, from the disassembly of the library (x86-64).

count_fastpath.py LIBRARY [--max N] [--show] [--function NAME ...]

The fast path is the code from the entry of the function to its first `ret` with no conditional jump taken: the cold exits
are jumps away from it. A call, a locked instruction, an xchg with memory or a jump on that way is an error, for then it is not what it claims
to be. --max fails when a path is longer.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from dataclasses import dataclass

LINE = re.compile(r"^\s*[0-9a-f]+:\s+(?P<instruction>.+?)\s*(?:#.*)?$")
PADDING = ("nop", "endbr64", "data16", "cs nop")


@dataclass
class Path:
    function: str
    instructions: list[str]

    def errors(self) -> list[str]:
        found = []
        for text in self.instructions:
            mnemonic = text.split()[0]
            if mnemonic == "lock" or (mnemonic.startswith("xchg") and "(" in text):
                found.append(f"{self.function}: atomic instruction on the fast path: {text}")
            if mnemonic == "call":
                found.append(f"{self.function}: call on the fast path: {text}")
            if mnemonic == "jmp":
                found.append(f"{self.function}: jump on the fast path: {text}")
        if not self.instructions or not self.instructions[-1].startswith("ret"):
            found.append(f"{self.function}: no ret found")
        return found


def fast_path(function: str, disassembly: str) -> Path:
    """From `objdump --disassemble=FUNCTION --no-show-raw-insn`."""
    instructions: list[str] = []
    inside = False
    for line in disassembly.splitlines():
        if line.rstrip().endswith(f"<{function}>:"):
            inside = True
            continue
        match = LINE.match(line)
        if not inside or not match:
            continue
        text = match["instruction"]
        if text.startswith(PADDING):
            continue
        instructions.append(text)
        if text.startswith("ret"):
            break
    return Path(function, instructions)


def disassemble(library: str, function: str) -> str:
    command = ["objdump", "--disassemble=" + function, "--no-show-raw-insn", library]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library")
    parser.add_argument("--max", type=int, help="fail when a path has more instructions")
    parser.add_argument("--show", action="store_true", help="list the instructions")
    parser.add_argument("--function", action="append", help="default: malloc and free")
    options = parser.parse_args(argv)
    failures: list[str] = []
    for function in options.function or ["malloc", "free"]:
        path = fast_path(function, disassemble(options.library, function))
        count = len(path.instructions)
        print(f"{function}: {count} instructions, checks included")
        if options.show:
            print("\n".join(f"    {i}" for i in path.instructions))
        failures += path.errors()
        if options.max is not None and count > options.max:
            failures.append(f"{function}: {count} instructions, at most {options.max} are allowed")
    for failure in failures:
        print(failure, file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
