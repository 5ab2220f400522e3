# SPDX-License-Identifier: MIT OR Apache-2.0
"""The library's table of samples, as it is in a process or a core file: src/profile/table.h."""

import contextlib
import platform
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from terrace.debug.layout import Layout, Row
from terrace.debug.memory import Memory, UnreadableError
from terrace.errors import TerraceError

Key = tuple[int, ...]  # of a sample: the same whenever one looks

STACK_COPIES = 1  # a bit of profile.mode
_LIVE, _FREED_SINCE_PEAK = 1, 2  # sample.state
_STACK_POINTER = 12 if platform.machine() == "aarch64" else 7  # of stack_copy.registers
_FRAME, _ALIGNED = struct.Struct("<QQ"), 8  # the caller's frame pointer, and the return address
_CODE_BITS = (1 << 48) - 1  # above may be a signature of the return address
_LOWEST_CODE = 4096
_PERIOD_BITS = 56  # of profile.period; above them is the number of the start
_ATTEMPTS, _AT_ONCE = 16, 16  # to read a record while the process writes it
_PATIENCE = 0.001  # seconds: so much more between two attempts
_CHANGES = 4  # of a record's version, for each block that it has stood for
_CHANGES_AT_ITS_END = 2  # of them


@dataclass(frozen=True)
class Copy:
    """Registers and the top of the stack, for unwinding."""

    pc: int
    registers: tuple[int, ...]
    data: bytes
    frame: int = 0  # from it frame pointers lead to the others

    def followed(self) -> tuple[int, ...]:
        """Return addresses by frame pointers, as src/os/frames.h has them."""
        found: list[int] = []
        start = self.registers[_STACK_POINTER]
        at, last = self.frame, start + len(self.data) - _FRAME.size
        while start <= at <= last and at % _ALIGNED == 0:
            above, pc = _FRAME.unpack_from(self.data, at - start)
            if pc & _CODE_BITS < _LOWEST_CODE:
                break
            found.append(pc & _CODE_BITS)
            at = above if above > at else last + 1
        return tuple(found)


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
        """Whole records: those that change meanwhile are read again, all in the same moment.

        Else a block that is freed meanwhile is not seen, and the one in its place is not either.
        """
        rows = self._layout.rows(self._memory, "sample", address, count)
        again = self._layout.rows(self._memory, "sample", address, count)["version"]
        changed = np.flatnonzero((rows["version"] != again) | (again % 2 != 0)).tolist()
        places = {number: address + number * rows.dtype.itemsize for number in changed}
        whole = self._whole([(at, (0, 0)) for at in places.values()])
        names = rows.dtype.names or ()
        for number in range(count):
            if number not in places:
                yield number, {name: rows[name][number] for name in names}
            elif places[number] in whole:
                yield number, whole[places[number]][0]

    def _whole(self, records: list[tuple[int, tuple[int, int]]]) -> dict[int, tuple[Row, bytes]]:
        """Records that may change all the time, and a range of memory beside each: of one moment.

        By the record's address. Each is read several times by one call. A thread that does not run
        just then, in the middle of writing, is waited for. Those that changed in all are left out.
        """
        dtype = self._layout.row("sample")
        version = self._layout.field("sample.version")
        found: dict[int, tuple[Row, bytes]] = {}
        for attempt in range(_ATTEMPTS if self._memory.changes else 1):
            left = [(at, beside) for at, beside in records if at not in found]
            if not left:
                break
            time.sleep(_PATIENCE * attempt)
            left *= -(-_AT_ONCE // len(left))
            parts = self._memory.at_once([
                part
                for at, beside in left
                for part in ((at, dtype.itemsize), beside, (at + version.offset, version.size))
            ])  # fmt: skip
            each = zip(left, parts[::3], parts[1::3], parts[2::3], strict=True)
            for (at, _), raw, stack, after in each:
                row = np.frombuffer(raw, dtype, 1)[0]
                if row["version"] == int.from_bytes(after, "little") and row["version"] % 2 == 0:
                    found[at] = {name: row[name] for name in dtype.names or ()}, stack
        return found

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

    def newest(self, sample: Sample) -> Sample:
        """With the copy of its stack, or the sample that its record has by now, with that one's."""
        where = self._copy_of(sample.record)
        if not sample.has_copy or sample.copy is not None or where is None:
            return sample
        with contextlib.suppress(UnreadableError):
            raw = self._memory.read(*where)
            version = self._record(sample.record)["version"]
            if version <= sample.version + _CHANGES_AT_ITS_END * sample.is_live:
                return replace(sample, copy=self._decoded(raw))
            at = self._address(sample.record)
            whole = self._whole([(at, where)]).get(at)
            if whole is not None:
                row, raw = whole
                newest = self._sample(row, sample.record, 0)
                return replace(newest, copy=self._decoded(raw)) if newest.has_copy else newest
        return sample

    def _copy_of(self, record: int) -> tuple[int, int] | None:
        """Where it is, and its bytes."""
        chunk, number = divmod(record, self._per_chunk)
        copies, size = self.chunks("copies")[chunk], self._layout.field("stack_copy").size
        return (copies + number * size, size) if copies else None

    def _decoded(self, raw: bytes) -> Copy:
        of = self._layout.offset
        count = self._layout.field("stack_copy.registers").count
        pc, frame, size = (
            int.from_bytes(raw[of(name) : of(name) + 8], "little")
            for name in ("stack_copy.pc", "stack_copy.frame", "stack_copy.bytes")
        )
        registers = struct.unpack_from(f"<{count}Q", raw, of("stack_copy.registers"))
        begin = of("stack_copy.data")
        return Copy(pc, registers, raw[begin : begin + size], frame)

    def _address(self, record: int) -> int:
        chunk, number = divmod(record, self._per_chunk)
        return self.chunks()[chunk] + number * self._layout.field("sample").size

    def _record(self, record: int) -> Row:
        return self._layout.read(self._memory, "sample", self._address(record))
