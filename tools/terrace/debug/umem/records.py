# SPDX-License-Identifier: MIT OR Apache-2.0
"""What UMEM_DEBUG keeps of objects: a tag behind each, and a record that the tag names.

An object has both from when it leaves its slab until it is back there: src/umem/debug.h.
"""

from dataclasses import dataclass

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
from terrace.debug.umem.logs import Event

_MOST_FRAMES = 512


@dataclass(frozen=True)
class Record(Event):
    """The last transaction of an object: at 0 if there was none, or without audit."""

    def is_of(self, heap: Heap, reader: "RecordReader") -> bool:
        """Whether the tag of its object names it: else it only looks like one."""
        if self.object in reader.walled:
            return reader.walled[self.object] == self.address
        found = heap.number_at(self.object)
        if found < 0 or heap.owner(found).cache != self.cache or self.cache == 0:
            return False
        cache = reader.caches.at(self.cache)
        other = reader.of_object(self.object, cache) if cache is not None else None
        return other is not None and other.address == self.address


def when(nanoseconds: int) -> str:
    seconds, rest = divmod(nanoseconds, 10**9)
    return f"{seconds}.{rest:09d}"


def happened(record: Record, frames: Frames) -> list[str]:
    """Who did it, and when; nothing where nobody wrote that down."""
    if record.nanoseconds == 0:
        return []
    return [
        f"thread {record.thread} at {when(record.nanoseconds)}",
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
