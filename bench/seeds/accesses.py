# SPDX-License-Identifier: MIT OR Apache-2.0
"""Which memory an instruction of x86-64 reads and writes: from objdump's text of it and the registers before it."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

REGISTERS = ("rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", *(f"r{n}" for n in range(8, 16)), "fs", "gs")
Registers = Mapping[str, int]
MASK = 2**64 - 1

PREFIXES = {
    "lock", "rep", "repz", "repnz", "data16", "bnd", "notrack", "rex.W", "addr32", "xacquire", "xrelease", "cs", "ds", "es", "ss",
}
# The last operand is where AT&T syntax puts the destination; for these it is only read,
READS = re.compile(r"^(cmp(?!xchg)|test|bt[bwlq]?$|v?u?comis|v?ptest|div|idiv|mul|imul|push|call|jmp|fld|ldmxcsr|vldmxcsr|verr|verw)")
# for these it is written without being read,
STORES = re.compile(r"^(mov|vmov|set|pop|stos|fst|stmxcsr|vstmxcsr|fnst|movnt|vextract|vpextr|pextr)")
# and these name an address or a line without an access that could abort a transaction.
NEITHER = re.compile(r"^(lea|nop|prefetch|clflush|clwb|endbr|ud|hlt)")
MEMORY = re.compile(
    r"^(?:%(?P<segment>[a-z]s):)?(?P<offset>-?0x[0-9a-f]+|\d+)?(?:\((?:%(?P<base>\w+))?(?:,%(?P<index>\w+)(?:,(?P<scale>\d))?)?\))?$")
PARTS_OF_VECTORS = {("movss", "mm"): 4, ("movd", "mm"): 4} | {
    (name, "mm"): 8 for name in ("movsd", "movq", "movhps", "movlps", "movhpd", "movlpd")}
SUFFIXES = {"b": 1, "w": 2, "l": 4, "q": 8}
STRINGS = re.compile(r"^(stos|movs|lods|scas|cmps)[bwlq]?$")


@dataclass(frozen=True)
class Access:
    address: int
    bytes: int
    write: bool

    def lines(self, line: int = 64) -> range:
        return range(self.address // line, (self.address + self.bytes - 1) // line + 1)


@dataclass(frozen=True)
class Instruction:
    mnemonic: str
    operands: tuple[str, ...]
    length: int
    repeated: bool = False


def _operands(text: str) -> tuple[str, ...]:
    return tuple(part for part in re.split(r",(?![^(]*\))", text) if part)


def parsed(text: str, length: int) -> Instruction:
    words = text.split("#")[0].split("<")[0].split()
    repeated = False
    while len(words) > 1 and words[0] in PREFIXES:
        repeated |= words[0].startswith("rep")
        words = words[1:]
    return Instruction(words[0], _operands("".join(words[1:])), length, repeated)


def disassembled(code: Mapping[int, bytes]) -> dict[int, Instruction]:
    """The instruction at each address; `code` has its bytes and what follows. One run of objdump for all: each gets a slot of 32
    bytes, the rest of which is filled with nops, so that whatever the bytes after the instruction are, the next slot begins one."""
    slot = 32
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "code"
        file.write_bytes(b"".join(c[:15].ljust(slot, b"\x90") for c in code.values()))
        text = subprocess.run(
            ["objdump", "-D", "-b", "binary", "-m", "i386:x86-64", "--insn-width=16", str(file)],
            check=True, capture_output=True, text=True,
        ).stdout
    at: dict[int, Instruction] = {}
    for row in text.splitlines():
        columns = row.split("\t")
        if len(columns) == 3 and columns[0].strip().endswith(":"):
            at[int(columns[0].strip()[:-1], 16)] = parsed(columns[2], len(columns[1].split()))
    return {address: at[n * slot] for n, address in enumerate(code)}


def _register(instruction: Instruction) -> str:
    """The register on the other side of an access."""
    return next((o[1:] for o in instruction.operands if o.startswith("%") and ":" not in o), "")


def _register_bytes(register: str) -> int:
    if register[1:3] == "mm":
        return {"x": 16, "y": 32, "z": 64}[register[0]]
    if re.match(r"^(e..|r\d+d)$", register):
        return 4
    if re.match(r"^([abcd]x|[sd]i|[sb]p|r\d+w)$", register):
        return 2
    return 1 if register.endswith(("l", "h", "b")) else 8


def _bytes(instruction: Instruction) -> int:
    """Of the operand in memory: told by what is extended, by the register on the other side, or by the mnemonic's last letter."""
    name, register = instruction.mnemonic, _register(instruction)
    extended = re.match(r"^mov[zs]([bwl])[wlq]$", name)
    if extended:
        return SUFFIXES[extended[1]]
    if register:
        return PARTS_OF_VECTORS.get((name.removeprefix("v"), register[1:3]), _register_bytes(register))
    return 8 if name.startswith(("call", "jmp", "push", "pop")) else SUFFIXES.get(name[-1], 8)


def _address(memory: re.Match[str], registers: Registers, after: int) -> int:
    base, index = memory["base"], memory["index"]
    address = int(memory["offset"] or "0", 0)
    if base == "rip":
        address += after
    elif base:
        address += registers[base]
    if index and index not in ("riz", "eiz"):
        address += registers[index] * int(memory["scale"] or 1)
    if memory["segment"] in ("fs", "gs"):
        address += registers[memory["segment"]]
    return address & MASK


def _string_bytes(instruction: Instruction) -> int:
    register = _register(instruction)
    return _register_bytes(register) if register else SUFFIXES.get(instruction.mnemonic[4:], 8)


def _string(instruction: Instruction, registers: Registers) -> list[Access]:
    """One step of it; with a prefix it is stepped through one by one, and none is made when the count is 0."""
    if instruction.repeated and registers["rcx"] == 0:
        return []
    kind, size = instruction.mnemonic[:4], _string_bytes(instruction)
    from_source, to_destination = kind in ("movs", "lods", "cmps"), kind in ("stos", "movs")
    accesses = [Access(registers["rsi"], size, False)] if from_source else []
    if kind != "lods":
        accesses.append(Access(registers["rdi"], size, to_destination))
    return accesses


def accesses(instruction: Instruction, at: int, registers: Registers) -> list[Access]:
    """In the order in which they are made: reads, then writes."""
    name, operands = instruction.mnemonic, instruction.operands
    if NEITHER.match(name):
        return []
    if STRINGS.match(name) and any("%es:" in o or "%ds:" in o for o in operands):
        return _string(instruction, registers)
    reads, writes = [], []
    for n, operand in enumerate(operands):
        memory = MEMORY.match(operand.lstrip("*"))
        if (operand.startswith(("%", "$")) and not operand.startswith(("%fs:", "%gs:"))) or memory is None:
            continue
        if name.startswith(("call", "jmp", "j")) and not operand.startswith("*"):
            continue  # a target, not an operand in memory
        last = n == len(operands) - 1
        access = Access(_address(memory, registers, at + instruction.length), _bytes(instruction), True)
        written = ((last and not (READS.match(name) and len(operands) < 3 and not (name.startswith("imul") and len(operands) > 1)))
                   or name.startswith(("xchg", "xadd", "cmpxchg")))
        if not written or not STORES.match(name):
            reads.append(Access(access.address, access.bytes, False))
        if written:
            writes.append(access)
    if name.startswith(("push", "call")):
        writes.append(Access((registers["rsp"] - 8) & MASK, 8, True))
    if name.startswith(("pop", "ret", "leave")):
        reads.append(Access(registers["rbp" if name.startswith("leave") else "rsp"], 8, False))
    return reads + writes


def aborts(instruction: Instruction) -> bool:
    """What ends a transaction by itself: going into the kernel, and the two instructions that the manual says always do."""
    return instruction.mnemonic in ("syscall", "sysenter", "int", "cpuid", "pause")


def registers_of(values: Sequence[str]) -> Registers:
    return {name: int(value, 16) for name, value in zip(REGISTERS, values, strict=True)}
