# SPDX-License-Identifier: MIT OR Apache-2.0
"""The library's table of samples, as it is in a process or a core file."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from terrace.debug.layout import Layout, Row, Rows
from terrace.debug.memory import Memory
from terrace.errors import TerraceError

LIVE, FREED_SINCE_PEAK = 1, 2  # sample.state
STACK_COPIES = 1  # a bit of profile.mode
Key = tuple[int, ...]  # of a sample: the same whenever one looks

_ATTEMPTS = 8  # to read records while the process writes them


@dataclass(frozen=True)
class Copy:
    """Registers and the top of the stack, for unwinding."""

    pc: int
    registers: tuple[int, ...]
    data: bytes


@dataclass(frozen=True)
class Sample:
    """A block that was drawn, and how many blocks it stands for."""

    address: int
    size: int
    weight: float
    pcs: tuple[int, ...]
    tid: int
    time: int  # milliseconds of CLOCK_MONOTONIC
    is_live: bool
    at_peak: bool
    record: int
    copy: Copy | None = None

    @property
    def key(self) -> Key:
        """Records are used again, but not for the same thread, address and time."""
        return self.record, self.address, self.time, self.tid


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
        return self._field("period")

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

    def chunks(self, name: str = "chunks") -> list[int]:
        field = self._layout.field(f"profile.{name}")
        found = self._memory.array(self._start + field.offset, field.count, np.uint64)
        return [int(address) for address in found]

    def memory_of_its_own(self) -> list[int]:
        """Addresses in it: pointers there keep no block alive."""
        return [at for name in ("chunks", "copies") for at in self.chunks(name) if at]

    def samples(self) -> Iterator[Sample]:
        """Live ones, and those that were live at the peak."""
        mark = self._field("mark")
        copies = self.chunks("copies")
        used = self._field("used")
        for i, address in enumerate(self.chunks()):
            count = min(used - i * self._per_chunk, self._per_chunk)
            if address == 0 or count <= 0:
                return
            for number, row in self._rows(address, count):
                sample = self._sample(row, i * self._per_chunk + number, mark)
                if sample is not None:
                    yield self._with_copy(sample, row, copies[i], number)

    def _rows(self, address: int, count: int) -> Iterator[tuple[int, Row]]:
        """Whole records: those that change meanwhile are read again."""
        rows = self._layout.rows(self._memory, "sample", address, count)
        again = self._layout.rows(self._memory, "sample", address, count)
        size = rows.dtype.itemsize
        names = rows.dtype.names or ()
        whole = (rows["version"] == again["version"]) & (rows["version"] % 2 == 0)
        for number in range(count):
            row: Rows | None = rows[number] if whole[number] else None
            for _ in range(_ATTEMPTS if row is None else 0):
                first, second = (
                    self._layout.rows(self._memory, "sample", address + number * size, 1)[0]
                    for _ in range(2)
                )
                if first["version"] == second["version"] and first["version"] % 2 == 0:
                    row = first
                    break
            if row is not None:
                yield number, {name: row[name] for name in names}

    def _sample(self, row: Row, number: int, mark: int) -> Sample | None:
        is_live = bool(row["address"] and row["state"] == LIVE)
        at_peak = (is_live and row["born"] < mark) or (
            row["state"] == FREED_SINCE_PEAK and row["died"] == mark
        )
        period = int(row["period"])
        if not (is_live or at_peak) or period == 0:
            return None
        depth = min(int(row["depth"]), len(row["pcs"]))
        return Sample(
            int(row["address"]), int(row["size"]),
            -1 / float(np.expm1(-max(int(row["weighed"]), 1) / period)),
            tuple(row["pcs"][:depth].tolist()), int(row["tid"]), int(row["time"]), is_live,
            bool(at_peak), number,
        )  # fmt: skip

    def _with_copy(self, sample: Sample, row: Row, copies: int, number: int) -> Sample:
        if not row["has_copy"] or not copies:
            return sample
        whole = self._layout.field("stack_copy").size
        found = self._layout.rows(self._memory, "stack_copy", copies + number * whole, 1)[0]
        data = found["data"].tobytes()[: int(found["bytes"])]
        copy = Copy(int(found["pc"]), tuple(found["registers"].tolist()), data)
        return replace(sample, copy=copy)
