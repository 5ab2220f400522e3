# SPDX-License-Identifier: MIT OR Apache-2.0
"""The rings of UMEM_LOGGING: what happened last, to which object, when and by whom."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from terrace.debug.layout import UmemLayout, filled
from terrace.debug.memory import Memory, UnreadableError
from terrace.debug.target import Range

NAMES = ("transaction", "contents", "fail", "slab")
_MAGIC = int.from_bytes(b"UMEMLOG1", "little")
_MOST_CHUNKS = 1 << 16
_MOST_CHUNK_BYTES = 1 << 28
_MOST_FRAMES = 512


@dataclass(frozen=True)
class Event:
    """What happened to an object, when and by whom; where that is written down."""

    address: int
    object: int
    cache: int
    nanoseconds: int
    thread: int
    stack: tuple[int, ...]


@dataclass(frozen=True)
class Transaction(Event):
    """An event, and the place of the one before it."""

    last: int
    contents: int = 0


@dataclass(frozen=True)
class Entry(Transaction):
    """`what` is one of umem/log.h's Happened."""

    chunk: int = 0
    number: int = 0
    what: int = 0
    saved: int = 0
    size: int = 0


class LogReader:
    """Of all four."""

    def __init__(self, umem: UmemLayout, memory: Memory) -> None:
        self._umem, self._memory = umem, memory

    def _field(self, log: int, name: str) -> int:
        return self._umem.value(self._memory, log, name)

    def _log(self, name: str) -> int:
        """0: it was not asked for, or is damaged."""
        try:
            log = self._memory.number(self._umem.address(f"log.{name}"))
            return log if log and self._field(log, "log.magic") == _MAGIC else 0
        except UnreadableError:
            return 0

    def bytes_of(self, name: str) -> int:
        log = self._log(name)
        return self._field(log, "log.bytes") if log else 0

    def ranges(self) -> list[Range]:
        """Their memory: what an entry points to is not kept by it."""
        found = []
        for name in NAMES:
            log = self._log(name)
            if log:
                start = self._field(log, "log.chunks")
                found.append((start, start + self._field(log, "log.bytes")))
        return found

    def entries(self, name: str) -> list[Entry]:
        """The newest first."""
        found = [entry for i in self._chunks(name) for entry in self._of_chunk(*i)]
        return sorted(found, key=lambda e: (-e.nanoseconds, -e.number))

    def _chunks(self, name: str) -> Iterator[tuple[int, int, bytes]]:
        log = self._log(name)
        if log == 0:
            return
        first, size = (self._field(log, f"log.{n}") for n in ("chunks", "chunk_bytes"))
        if not 0 < size < _MOST_CHUNK_BYTES:
            return
        for i in range(min(self._field(log, "log.chunk_count"), _MOST_CHUNKS)):
            try:
                yield i, first + i * size, self._memory.read(first + i * size, size)
            except UnreadableError:
                return

    def _of_chunk(self, index: int, start: int, raw: bytes) -> Iterator[Entry]:
        umem = self._umem
        chunk = umem.decode("chunk", raw)
        if chunk["number"] == 0:
            return
        head = umem.field("entry").size
        at = umem.field("chunk").size
        used = min(chunk["used"], len(raw))
        while at + head <= used:
            row = umem.decode("entry", raw[at : at + head])
            end = at + row["bytes"]
            if end < at + head or end > used:
                return  # half written
            behind = raw[at + head : end]
            depth = min(row["depth"], _MOST_FRAMES, len(behind) // 8) if not row["saved"] else 0
            stack = struct.unpack_from(f"<{depth}Q", behind)
            yield filled(
                Entry, row, address=start + at, chunk=index, last=row["last_log"], stack=stack
            )
            at = end

    def at(self, address: int) -> Entry | None:
        """An entry that somebody points to. None: it has been overwritten, or is none."""
        for name in NAMES:
            for index, start, raw in self._chunks(name):
                if start <= address < start + len(raw):
                    found = self._of_chunk(index, start, raw)
                    return next((e for e in found if e.address == address), None)
        return None
