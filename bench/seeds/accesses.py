# SPDX-License-Identifier: MIT OR Apache-2.0
"""Which memory an instruction of x86-64 reads and writes: from its bytes and the registers before it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from iced_x86 import Decoder, Instruction, InstructionInfoFactory, MemorySizeExt, Mnemonic, OpAccess, Register, RegisterExt

REGISTERS = ("rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", *(f"r{n}" for n in range(8, 16)), "fs", "gs")
NAMES = {getattr(Register, name.upper()): name for name in REGISTERS}
Registers = Mapping[str, int]
MASK = 2**64 - 1
READS = (OpAccess.READ, OpAccess.COND_READ, OpAccess.READ_WRITE, OpAccess.READ_COND_WRITE)
WRITES = (OpAccess.WRITE, OpAccess.COND_WRITE, OpAccess.READ_WRITE, OpAccess.READ_COND_WRITE)
# What ends a transaction by itself: going into the kernel, and the two instructions that the manual says always do.
ABORTING = (Mnemonic.SYSCALL, Mnemonic.SYSENTER, Mnemonic.INT, Mnemonic.CPUID, Mnemonic.PAUSE)
INFORMATION = InstructionInfoFactory()


@dataclass(frozen=True)
class Access:
    address: int
    bytes: int
    write: bool

    def lines(self, line: int = 64) -> range:
        return range(self.address // line, (self.address + self.bytes - 1) // line + 1)


def disassembled(code: Mapping[int, bytes]) -> dict[int, Instruction]:
    """The instruction at each address; `code` has its bytes and what follows."""
    return {at: Decoder(64, text, ip=at).decode() for at, text in code.items()}


def accesses(instruction: Instruction, registers: Registers) -> list[Access]:
    """In the order in which they are made: reads, then writes. Of a string instruction one step: with a prefix it is stepped through
    one by one, and none is made when the count is 0."""
    if (instruction.has_rep_prefix or instruction.has_repne_prefix) and instruction.is_string_instruction and registers["rcx"] == 0:
        return []
    reads, writes = [], []
    for memory in INFORMATION.info(instruction).used_memory():
        address = memory.displacement + registers.get(NAMES.get(memory.segment, ""), 0)
        for register, scale in ((memory.base, 1), (memory.index, memory.scale)):
            address += scale * registers.get(NAMES.get(RegisterExt.full_register(register), ""), 0)
        size = MemorySizeExt.size(memory.memory_size or instruction.memory_size) or 8
        reads += [Access(address & MASK, size, False)] if memory.access in READS else []
        writes += [Access(address & MASK, size, True)] if memory.access in WRITES else []
    return reads + writes


def aborts(instruction: Instruction) -> bool:
    return instruction.mnemonic in ABORTING


def registers_of(values: Sequence[str]) -> Registers:
    return {name: int(value, 16) for name, value in zip(REGISTERS, values, strict=True)}
