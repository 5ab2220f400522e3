# SPDX-License-Identifier: MIT OR Apache-2.0
"""The library's table of samples, as it is in a process or a core file: src/profile/table.h."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from terrace.debug.layout import Layout, Row
from terrace.debug.memory import Memory, UnreadableError
from terrace.errors import TerraceError

Key = tuple[int, ...]  # of a sample: the same whenever one looks

STACK_COPIES = 1  # a bit of profile.mode
_LIVE, _FREED_SINCE_PEAK = 1, 2  # sample.state
_PERIOD_BITS = 56  # of profile.period; above them is the number of the start
_ATTEMPTS = 16  # to read a record while the process writes it
_CHANGES = 4  # of a record's version, for each block that it has stood for
_CHANGES_AT_ITS_END = 2  # of them


@dataclass(frozen=True)
class Copy:
    """Registers and the top of the stack, for unwinding."""

    pc: int
    registers: tuple[int, ...]
    data: bytes


@dataclass(frozen=True)
class Sample:
    """A block that was drawn, and how many blocks it stands for."""

    address: int  # 0: it is freed
    size: int
    weight: float
    pcs: tuple[int, ...]
    tid: int
    time: int  # milliseconds of CLOCK_MONOTONIC
    is_live: bool
    at_peak: bool
    record: int
    version: int
    has_copy: bool = False
    copy: Copy | None = None

    @property
    def key(self) -> Key:
        """Records are used again, but hardly by the same thread in the same millisecond."""
        return self.record, self.time, self.tid

    def uses_since(self, before: "Sample | None") -> int:
        """How many blocks its record has stood for since; 0: it is the same."""
        if before is None:
            return -(-self.version // _CHANGES)
        changes = self.version - before.version
        if changes <= _CHANGES_AT_ITS_END and self.key == before.key:
            return 0
        return max(-(-(changes - _CHANGES_AT_ITS_END * before.is_live) // _CHANGES), 1)


class Table:
    """Of one heap."""

    def __init__(self, layout: Layout, memory: Memory) -> None:
        if not layout.describes("profile"):
            raise TerraceError(
                f"the library in it (Terrace {layout.library_version}) has no profiler: "
                "start the program with a newer one"
            )
        self._layout, self._memory = layout, memory
        self._start = layout.address("profile")
        self._per_chunk = layout.constant("profile.per_chunk")

    def _field(self, name: str) -> int:
        return self._layout.value(self._memory, self._start, f"profile.{name}")

    @property
    def period(self) -> int:
        return self._field("period") & ((1 << _PERIOD_BITS) - 1)

    @property
    def taken(self) -> int:
        return self._field("taken")

    @property
    def lost(self) -> int:
        return self._field("lost")

    def word(self, name: str) -> tuple[int, int]:
        """Where a field is, and its bytes: for who writes it."""
        field = self._layout.field(f"profile.{name}")
        return self._start + field.offset, field.size

    def next_word(self, period: int) -> int:
        """What makes the library sample: it compares the number of the start with the last one."""
        start = (self._field("period") >> _PERIOD_BITS) + (period != 0)
        return (start << _PERIOD_BITS | period) & ((1 << 64) - 1)

    def chunks(self, name: str = "chunks") -> list[int]:
        field = self._layout.field(f"profile.{name}")
        found = self._memory.array(self._start + field.offset, field.count, np.uint64)
        return [int(address) for address in found]

    def memory_of_its_own(self) -> list[tuple[int, int]]:
        """Pointers there keep no block alive."""
        kinds = (("chunks", "sample"), ("copies", "stack_copy"))
        return [
            (at, at + self._per_chunk * self._layout.field(record).size)
            for name, record in kinds
            for at in self.chunks(name)
            if at
        ]

    def samples(self) -> Iterator[Sample]:
        """Without their copies; freed ones too, as long as their records are not used again."""
        mark = self._field("mark")
        used = self._field("used")
        for i, address in enumerate(self.chunks()):
            count = min(used - i * self._per_chunk, self._per_chunk)
            if address == 0 or count <= 0:
                return
            for number, row in self._rows(address, count):
                if row["period"]:
                    yield self._sample(row, i * self._per_chunk + number, mark)

    def _rows(self, address: int, count: int) -> Iterator[tuple[int, Row]]:
        """Whole records: those that change meanwhile are read again."""
        rows = self._layout.rows(self._memory, "sample", address, count)
        again = self._layout.rows(self._memory, "sample", address, count)["version"]
        names = rows.dtype.names or ()
        for number in range(count):
            row, size = rows[number : number + 1], rows.dtype.itemsize
            version = int(again[number])
            for _ in range(_ATTEMPTS):
                if row["version"][0] == version and version % 2 == 0:
                    yield number, {name: row[name][0] for name in names}
                    break
                at = address + number * size
                row = self._layout.rows(self._memory, "sample", at, 1)
                version = int(self._layout.rows(self._memory, "sample", at, 1)["version"][0])

    def _sample(self, row: Row, number: int, mark: int) -> Sample:
        is_live = row["state"] == _LIVE
        at_peak = (is_live and row["born"] < mark) or (
            row["state"] == _FREED_SINCE_PEAK and row["died"] == mark
        )
        depth = min(int(row["depth"]), len(row["pcs"]))
        return Sample(
            int(row["address"]), int(row["size"]),
            -1 / float(np.expm1(-max(int(row["weighed"]), 1) / int(row["period"]))),
            tuple(row["pcs"][:depth].tolist()), int(row["tid"]), int(row["time"]), bool(is_live),
            bool(at_peak), number, int(row["version"]), bool(row["has_copy"]),
        )  # fmt: skip

    def with_copy(self, sample: Sample) -> Sample:
        """The copy of its stack, unless its record is another's by now."""
        chunk, number = divmod(sample.record, self._per_chunk)
        copies = self.chunks("copies")[chunk]
        if not sample.has_copy or sample.copy is not None or not copies:
            return sample
        at = copies + number * self._layout.field("stack_copy").size
        try:
            raw = self._memory.read(at, self._layout.field("stack_copy").size)
            version = self._record(sample.record)["version"]
        except UnreadableError:
            return sample
        if version > sample.version + _CHANGES_AT_ITS_END * sample.is_live:
            return sample
        of = self._layout.offset
        count = self._layout.field("stack_copy.registers").count
        pc, size = (
            int.from_bytes(raw[of(name) : of(name) + 8], "little")
            for name in ("stack_copy.pc", "stack_copy.bytes")
        )
        registers = struct.unpack_from(f"<{count}Q", raw, of("stack_copy.registers"))
        begin = of("stack_copy.data")
        return replace(sample, copy=Copy(pc, registers, raw[begin : begin + size]))

    def _record(self, record: int) -> Row:
        chunk, number = divmod(record, self._per_chunk)
        at = self.chunks()[chunk] + number * self._layout.field("sample").size
        return self._layout.read(self._memory, "sample", at)

    def newest(self, sample: Sample) -> Sample:
        """With its copy, or the sample that its record has by now, with that one's."""
        for _ in range(_ATTEMPTS):
            found = self.with_copy(sample)
            if found.copy is not None or not found.has_copy:
                return found
            row = self._record(sample.record)
            if row["version"] % 2 == 0:
                sample = self._sample(row, sample.record, 0)
        return sample
