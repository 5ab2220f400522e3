# SPDX-License-Identifier: MIT OR Apache-2.0
"""What UMEM_DEBUG keeps of objects: a tag behind each, and a record that the tag names.

An object has both from when it leaves its slab until it is back there: src/umem/debug.h.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from terrace.debug.heap import Heap
from terrace.debug.layout import UmemLayout, filled
from terrace.debug.memory import Memory, UnreadableError
from terrace.debug.symbols import Frames
from terrace.debug.umem.caches import (
    Cache,
    CacheReader,
    debugs_objects,
    tag_offset,
)

_MOST_FRAMES = 512


@dataclass(frozen=True)
class Record:
    """The last transaction of an object: at 0 if there was none, or without audit."""

    address: int
    object: int
    cache: int
    nanoseconds: int
    thread: int
    stack: tuple[int, ...]

    def is_of(self, heap: Heap, reader: RecordReader) -> bool:
        """Whether the tag of its object names it: else it only looks like one."""
        if self.object in reader.walled:
            return reader.walled[self.object] == self.address
        found = heap.numbers_at(np.array([self.object], np.uint64))
        if found[0] < 0 or heap.owner(int(found[0])).cache != self.cache or self.cache == 0:
            return False
        cache = reader.caches.at(self.cache)
        other = reader.of_object(self.object, cache) if cache is not None else None
        return other is not None and other.address == self.address


def happened(record: Record, frames: Frames) -> list[str]:
    """Who did it, and when; nothing where nobody wrote that down."""
    if record.nanoseconds == 0:
        return []
    seconds, rest = divmod(record.nanoseconds, 10**9)
    return [
        f"thread {record.thread} at {seconds}.{rest:09d}",
        *(f"    {frames.name(address)}" for address in record.stack),
    ]


class RecordReader:
    """Reads one."""

    def __init__(self, umem: UmemLayout, memory: Memory, heap: Heap) -> None:
        self._umem, self._memory = umem, memory
        self.caches = CacheReader(umem, memory)
        self.walled = {o.address: o.record for o in heap.apart.objects if o.record}

    def of_object(self, address: int, cache: Cache | None) -> Record | None:
        """Of an object of a cache, if it has a sound one."""
        if address in self.walled:
            return self.at(self.walled[address])
        if cache is None or not cache.debug & debugs_objects(self._umem):
            return None
        at = address + tag_offset(cache) + self._umem.offset("tag.record")
        try:
            found = self.at(self._memory.number(at))
        except UnreadableError:
            return None
        good = found is not None and (found.object, found.cache) == (address, cache.address)
        return found if good else None

    def at(self, address: int) -> Record | None:
        """None: nothing can be read there."""
        umem = self._umem
        try:
            row = umem.read(self._memory, "record", address)
            if row["depth"] > _MOST_FRAMES:
                return None
            at = address + umem.constant("record.stack")
            stack = self._memory.array(at, row["depth"], "<u8").tolist()
        except UnreadableError:
            return None
        return filled(Record, row, address=address, stack=tuple(stack))
