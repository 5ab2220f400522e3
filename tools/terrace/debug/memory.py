# SPDX-License-Identifier: MIT OR Apache-2.0
"""Memory of another process: what every target offers, and a copy of some of it."""

import bisect
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from terrace.errors import TerraceError

Bytes = npt.NDArray[np.uint8]
Words = npt.NDArray[np.uint64]

_MOST_ABSENT = 256 << 20  # bytes: no table that makes sense has so many that are not there


class UnreadableError(TerraceError):
    """Nothing can be read at an address."""

    def __init__(self, address: int) -> None:
        super().__init__(f"address {address:#x} can not be read")


def expect_few(address: int, absent: int) -> None:
    """Where memory is damaged a table may seem to be larger than this machine's memory."""
    if absent > _MOST_ABSENT:
        raise UnreadableError(address)


@dataclass(frozen=True)
class Mapping:
    """A line of /proc/PID/maps, or what a core file says of one."""

    start: int
    end: int
    permissions: str
    offset: int = 0
    path: str = ""

    @property
    def is_file(self) -> bool:
        return self.path.startswith("/") and not self.path.startswith("/dev/zero")


@dataclass(frozen=True)
class Thread:
    """Where a thread was, and all that its registers held. `tp` leads to its thread-local data."""

    tid: int
    pc: int
    sp: int
    words: Words
    tp: int = 0  # not known


class Memory(ABC):
    """Reads; numbers are little-endian, as on all machines that Terrace runs on."""

    changes = False  # while it is read

    @abstractmethod
    def read(self, address: int, size: int) -> bytes:
        """Raises UnreadableError."""

    def sparse(self, address: int, size: int) -> Bytes:
        """As read(); what is not there is zero."""
        try:
            return np.frombuffer(self.read(address, size), np.uint8)
        except UnreadableError:
            expect_few(address, size)
            return np.zeros(size, np.uint8)

    def at_once(self, ranges: list[tuple[int, int]]) -> list[bytes]:
        """What lies at addresses, so many bytes each, read as soon after one another as can be."""
        return [self.read(address, size) for address, size in ranges]

    def number(self, address: int, size: int = 8) -> int:
        return int.from_bytes(self.read(address, size), "little")

    def array(self, address: int, count: int, dtype: Any) -> npt.NDArray[Any]:
        size = np.dtype(dtype).itemsize
        return np.frombuffer(self.read(address, count * size), dtype)


@dataclass(frozen=True)
class Segment:
    start: int
    data: Bytes

    @property
    def end(self) -> int:
        return self.start + len(self.data)


class Copy(Memory):
    """Segments of memory, and another source for what is in none of them."""

    def __init__(self, segments: list[Segment], beside: Memory | None = None) -> None:
        self.segments = sorted(segments, key=lambda s: s.start)
        self._starts = [s.start for s in self.segments]
        self._beside = beside

    def within(self, start: int, end: int) -> list[Segment]:
        """The parts of segments that lie there."""
        found = []
        first = max(bisect.bisect_right(self._starts, start) - 1, 0)
        for segment in self.segments[first:]:
            if segment.start >= end:
                break
            low, high = max(start, segment.start), min(end, segment.end)
            if low < high:
                part = segment.data[low - segment.start : high - segment.start]
                found.append(Segment(low, part))
        return found

    def read(self, address: int, size: int) -> bytes:
        parts = self.within(address, address + size)
        if sum(len(p.data) for p in parts) == size:
            return b"".join(p.data.tobytes() for p in parts)
        if self._beside is not None:
            return self._beside.read(address, size)
        raise UnreadableError(address)

    def sparse(self, address: int, size: int) -> Bytes:
        parts = self.within(address, address + size)
        if len(parts) == 1 and len(parts[0].data) == size:
            return parts[0].data
        expect_few(address, size - sum(len(part.data) for part in parts))
        whole = np.zeros(size, np.uint8)
        for part in parts:
            at = part.start - address
            whole[at : at + len(part.data)] = part.data
        return whole
