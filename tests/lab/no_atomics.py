#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""No atomic instruction on the way to an object of the core's buffer by critical sections, from the disassembly (x86-64).

no_atomics.py PROGRAM      a program with the engine in it

terrace_lab_allocate_core: the bump sequence is inline; no way through it that does not leave it has a call or an atomic.
terrace_lab_allocate_at: from function to function (CHAIN), the last of which has the sequence inline; there is no atomic in any of
them. What they call besides (a refill, the levels above) is out of line, or the compiler has changed its mind about inlining, and
this test says so. The abort handlers, behind the functions, do not count: they run after an interruption.
"""

import pathlib
import re
import subprocess
import sys
from dataclasses import dataclass

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))

import count_fastpath

CORE = "terrace_lab_allocate_core"
HEAP = "terrace::lab::Heap::"
CHAIN = (
    "terrace_lab_allocate_at",
    HEAP + "allocate_at(",
    HEAP + "take(",
    "terrace::lab::BufferLevel::take(",
    HEAP + "take_restartably(",
)
WITH_ATOMICS = (HEAP + "take_by_cas(", HEAP + "take_from(", HEAP + "refill_by_cas(")  # to show that they would be seen
SEQUENCE = re.compile(r"mov\s+%\w+,%fs:\(%\w+\)")  # the store of its descriptor
MOST_INSTRUCTIONS = 18  # of CORE, of which two ask whether the thread is registered with rseq (ADR 12)


@dataclass
class Function:
    name: str
    address: int
    instructions: list[str]

    def atomics(self) -> list[str]:
        return [i for i in self.instructions if i.startswith("lock ") or (i.startswith("xchg") and "(" in i)]

    def goes_to(self, other: "Function") -> bool:
        target = re.compile(rf"\b(?:call|jmp)\s+{other.address:x}\b")
        return any(target.search(i) for i in self.instructions)


def run(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def find(program: str, symbols: str, prefix: str) -> Function:
    for line in symbols.splitlines():
        parts = line.split(maxsplit=3)
        if len(parts) == 4 and parts[2] in "tTwW" and (parts[3] == prefix or (prefix[-1] == "(" and parts[3].startswith(prefix))):
            start, size = int(parts[0], 16), int(parts[1], 16)
            of_it = (f"--start-address={start}", f"--stop-address={start + size}")
            text = run("objdump", "-d", "--no-show-raw-insn", *of_it, program)
            found = (count_fastpath.LINE.match(line) for line in text.splitlines())
            return Function(prefix, start, [m["instruction"] for m in found if m])
    sys.exit(f"{prefix}: no such function in {program}")


def errors_of_chain(chain: list[Function]) -> list[str]:
    errors = [f"{f.name}: {atomic}" for f in chain for atomic in f.atomics()]
    for caller, callee in zip(chain, chain[1:]):
        if not caller.goes_to(callee):
            errors.append(f"{caller.name} does not go to {callee.name}: inlined? Then this list is not the way any more")
    if not any(SEQUENCE.search(i) for i in chain[-1].instructions):
        errors.append(f"{chain[-1].name}: no sequence in it")
    return errors


def main(program: str) -> int:
    symbols = run("nm", "-C", "-S", "--defined-only", program)
    errors = errors_of_chain([find(program, symbols, name) for name in CHAIN])
    if not any(find(program, symbols, name).atomics() for name in WITH_ATOMICS if name in symbols):
        errors.append("no atomic instruction in the functions that have some: the search is broken")
    core = count_fastpath.analyse(CORE, count_fastpath.disassemble(program, CORE))
    errors += core.errors()
    print(f"{CORE}: {len(core.longest)} instructions")
    if len(core.longest) > MOST_INSTRUCTIONS:
        errors.append(f"{CORE}: at most {MOST_INSTRUCTIONS} instructions are allowed")
    for error in errors:
        print(error, file=sys.stderr)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
