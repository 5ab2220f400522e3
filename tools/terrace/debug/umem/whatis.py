# SPDX-License-Identifier: MIT OR Apache-2.0
"""What object caches and arenas add to `whatis`."""

from terrace.debug.heap import Heap
from terrace.debug.symbols import Frames
from terrace.debug.target import Target
from terrace.debug.umem.arenas import ArenaReader
from terrace.debug.umem.malloc_tags import MallocTags
from terrace.debug.umem.records import RecordReader, happened


def segment_lines(target: Target, address: int) -> list[str]:
    """The pieces and free segments of arenas that have the address; several arenas may."""
    if target.umem is None:
        return []
    reader = ArenaReader(target.umem, target.memory)
    return [
        f"{address:#x} is {s.start:#x}{f'+{address - s.start:#x}' if address != s.start else ''}, "
        f"(vmem_seg {s.address:#x}) {'free in' if s.kind == 'free' else 'allocated from'} "
        f"{arena.name} vmem arena"
        for arena in reader
        for s in reader.segments(arena)
        if s.kind != "span" and s.start <= address < s.end
    ]


def malloc_lines(target: Target, heap: Heap, number: int) -> list[str]:
    """What malloc has returned, where it has a tag before it: under UMEM_DEBUG."""
    if target.umem is None or not heap.allocated[number]:
        return []
    returned = MallocTags(target.umem, target.memory, heap).returned(number)
    return [] if returned is None else [f"{returned:#x} is what malloc has returned"]


def record_lines(target: Target, heap: Heap, number: int) -> list[str]:
    """Of an object under UMEM_DEBUG=audit; and whose record a block of malloc's is."""
    if target.umem is None:
        return []
    start = heap.address(number)
    owner = heap.owner(number)
    reader = RecordReader(target.umem, target.memory, heap)
    cache = reader.caches.at(owner.cache) if owner.cache else None
    record = reader.of_object(start, cache)
    if record is None and cache is None:
        record = reader.at(start)
        if record is None or not record.is_of(heap, reader):
            return []
        return [f"{start:#x} is the bufctl of {record.object:#x}"]
    if record is None:
        return []
    frames = Frames(target.mappings())
    return [f"bufctl {record.address:x}", *happened(record, frames)]
