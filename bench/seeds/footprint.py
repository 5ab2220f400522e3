# SPDX-License-Identifier: MIT OR Apache-2.0
"""What malloc and free touch, and how much of it a transaction can hold: the recordings of bench_footprint, taken apart."""

import json
import statistics
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from accesses import Access, aborts, accesses, disassembled, registers_of
from interleave import Subject
from workload import ran

LINE = 64
STACK = 2**23  # below what is mapped yet, too


@dataclass
class Step:
    """One malloc and free, or one of them, depending on the region."""

    accesses: list[Access] = field(default_factory=list)
    block: int = 0
    instructions: int = 0
    aborts: bool = False  # whatever the cache holds


@dataclass
class Recording:
    rseq: int = 0
    stack: range = range(0)
    regions: dict[str, list[Step]] = field(default_factory=dict)


def read(lines: Iterable[str], size: int) -> Recording:
    """The store to a block that was allocated stands at its end, as the child makes it."""
    text = [line.split() for line in lines]
    code = {int(words[1], 16): bytes.fromhex(words[2]) for words in text if words[0] == "code"}
    instructions = disassembled(code)
    recording = Recording()
    name, step = "", Step()
    for words in text:
        kind, values = words[0], words[1:]
        if kind == "rseq":
            recording.rseq = int(values[0], 16)
        elif kind == "stack":
            recording.stack = range(int(values[0], 16) - STACK, int(values[1], 16))
        elif kind == "region":
            name, step = values[0], Step()
            recording.regions[name] = []
        elif kind == "block":
            step.block = int(values[0], 16)
            if name == "allocate":
                step.accesses.append(Access(step.block, min(size, 8), True))
        elif kind == "done":
            recording.regions[name].append(step)
            step = Step()
        elif kind == "step":
            at = int(values[0], 16)
            step.instructions += 1
            step.aborts |= aborts(instructions[at])
            step.accesses += accesses(instructions[at], registers_of(values[1:]))
    return recording


def record(build: Path, subject: Subject, size: int, nodes: int, scratch: Path) -> Recording:
    report = scratch / "recording"
    settings = [f"{k}={v}" for k, v in subject.environment.items()]
    command = [str(build / "bench" / "seeds" / "bench_footprint"), str(report), *settings, str(size), str(nodes)]
    ran(command, timeout=120)
    with report.open(encoding="ascii") as lines:
        return read(lines, size)


@dataclass(frozen=True)
class Pair:
    """Of one malloc and one free, the median of the pairs."""

    instructions: float
    written: float  # lines, all of them
    own: float  # lines that are neither of the stack nor of the block: the allocator's
    rseq: float  # of these, the line with the thread's restartable sequence
    read: float  # lines read, not written
    calls: float  # how many of the pairs contain an instruction that aborts a transaction: a system call


def pair(recording: Recording, size: int) -> Pair:
    rows = []
    for step in recording.regions["pairs"]:
        written = {n for a in step.accesses if a.write for n in a.lines(LINE)}
        touched = {n for a in step.accesses for n in a.lines(LINE)}
        block = set(Access(step.block, size, True).lines(LINE))
        own = {n for n in written - block if n * LINE not in recording.stack}
        rows.append((step.instructions, len(written), len(own), len(own & {recording.rseq // LINE}), len(touched - written)))
    calls = sum(step.aborts for step in recording.regions["pairs"])
    return Pair(*(statistics.median(column) for column in zip(*rows, strict=True)), calls)


@dataclass(frozen=True)
class Held:
    """How many steps of a region one transaction can hold, in a simulated cache that is empty at its beginning."""

    steps: int
    reason: str  # what ends it


def held(build: Path, steps: list[Step], policy: str) -> Held:
    text = "".join(f"{'w' if a.write else 'r'} {n * LINE:x}\n" for s in steps for a in s.accesses for n in a.lines(LINE))
    left = json.loads(ran([str(build / "bench" / "seeds" / "bench_l1_trace")], input=text).stdout)[policy]
    for n, step in enumerate(steps):
        if step.aborts:
            return Held(n, "system call")
        left -= sum(len(a.lines(LINE)) for a in step.accesses)
        if left < 0:
            return Held(n, "written line displaced")
    return Held(len(steps), "none")
