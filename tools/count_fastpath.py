#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Counts the instructions on the fast paths of malloc and free, from the disassembly of the library (x86-64).

count_fastpath.py LIBRARY [--expect NAME=N,...] [--show] [--function NAME ...]

A fast path is a way from the entry of the function to a `ret` without leaving it: what jumps to another function is a cold exit. The
longest one counts. A call or an atomic instruction on any of them is an error, for then it is not what it claims to be. --expect fails
when the longest has another length: the documentation says how many there are (tools/check_docs.py).
"""

import argparse
import re
import subprocess
import sys
from dataclasses import dataclass

LINE = re.compile(r"^\s*(?P<address>[0-9a-f]+):\s+(?P<instruction>.+?)\s*(?:#.*)?$")
TARGET = re.compile(r"^j\w+\s+(?P<address>[0-9a-f]+)\b")
PADDING = ("nop", "endbr64", "data16", "cs nop", "xchg   %ax,%ax")


@dataclass
class Function:
    name: str
    paths: list[list[str]]

    @property
    def longest(self) -> list[str]:
        return max(self.paths, key=len, default=[])

    def errors(self) -> list[str]:
        found = [] if self.paths else [f"{self.name}: no ret found"]
        for text in dict.fromkeys(text for path in self.paths for text in path):
            mnemonic = text.split()[0]
            if mnemonic == "lock" or (mnemonic.startswith("xchg") and "(" in text):
                found.append(f"{self.name}: atomic instruction on the fast path: {text}")
            if mnemonic == "call":
                found.append(f"{self.name}: call on the fast path: {text}")
        return found


def instructions_of(name: str, disassembly: str) -> dict[int, str]:
    """By address, without padding, in order."""
    instructions: dict[int, str] = {}
    inside = False
    for line in disassembly.splitlines():
        if line.rstrip().endswith(">:"):
            inside = line.rstrip().endswith(f"<{name}>:")
            continue
        match = LINE.match(line)
        if inside and match and not match["instruction"].startswith(PADDING):
            instructions[int(match["address"], 16)] = match["instruction"]
    return instructions


def analyse(name: str, disassembly: str) -> Function:
    """From `objdump --disassemble=NAME --no-show-raw-insn`."""
    instructions = instructions_of(name, disassembly)
    order = sorted(instructions)
    following = dict(zip(order, order[1:]))
    paths: list[list[str]] = []

    def walk(address: int | None, path: list[str], seen: frozenset[int]) -> None:
        while address is not None and address in instructions and address not in seen:
            text = instructions[address]
            seen |= {address}
            path = [*path, text]
            if text.startswith("ret"):
                paths.append(path)
                return
            target = TARGET.match(text)
            if target:
                walk(int(target["address"], 16), path, seen)
                if text.startswith("jmp"):
                    return
            address = following.get(address)

    walk(order[0] if order else None, [], frozenset())
    return Function(name, paths)


def disassemble(library: str, function: str) -> str:
    command = ["objdump", "--disassemble=" + function, "--no-show-raw-insn", library]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library")
    parser.add_argument("--expect", default="", help="NAME=N,...: fail when the longest path has another number of instructions")
    parser.add_argument("--show", action="store_true", help="list the instructions")
    parser.add_argument("--function", action="append", help="default: malloc and free")
    options = parser.parse_args(argv)
    failures: list[str] = []
    expected = dict(part.split("=") for part in options.expect.split(",") if part)
    for function in options.function or ["malloc", "free"]:
        found = analyse(function, disassemble(options.library, function))
        lengths = sorted({len(path) for path in found.paths})
        count = len(found.longest)
        print(f"{function}: {count} instructions, checks included" + (f" (paths: {lengths})" if len(lengths) > 1 else ""))
        if options.show:
            print("\n".join(f"    {i}" for i in found.longest))
        failures += found.errors()
        if count != int(expected.get(function, count)):
            failures.append(f"{function}: {count} instructions, {expected[function]} are expected")
    for failure in failures:
        print(failure, file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
