# SPDX-License-Identifier: MIT OR Apache-2.0
"""Where a program keeps pointers: its writable memory without Terrace's own, stacks, registers."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterable

from terrace.debug.layout import Layout
from terrace.debug.magazines import depot_tables, shard_bytes, slots
from terrace.debug.memory import Mapping, Memory, Thread
from terrace.debug.objects import ObjectClasses
from terrace.debug.target import Capture, Range

RED_ZONE = 128  # below the stack pointer, that functions may use without moving it


def readable_data(mappings: list[Mapping]) -> list[Range]:
    """What may hold pointers to blocks: writable, or written once and protected since."""
    found = []
    for m, after in zip(mappings, [*mappings[1:], None], strict=True):
        if "r" not in m.permissions or m.path.startswith(("[vvar", "[vdso", "[vsyscall")):
            continue
        if m.path.startswith("/dev/") and not m.path.startswith(("/dev/shm/", "/dev/zero")):
            continue  # a device's memory: to read it may do something
        if "w" in m.permissions or not m.is_file or _is_protected_data(m, after):
            found.append((m.start, m.end))
    return found


def _is_protected_data(m: Mapping, after: Mapping | None) -> bool:
    """Relocated data that the dynamic linker protects (RELRO) lies before an object's own data."""
    return (
        after is not None
        and after.start == m.end
        and after.path == m.path
        and "w" in after.permissions
        and "x" not in m.permissions
    )


def _merged(ranges: Iterable[Range]) -> list[Range]:
    """In order, without those that overlap."""
    result: list[Range] = []
    for start, end in sorted(r for r in ranges if r[0] < r[1]):
        if result and start <= result[-1][1]:
            result[-1] = (result[-1][0], max(end, result[-1][1]))
        else:
            result.append((start, end))
    return result


def without(ranges: Iterable[Range], holes: Iterable[Range]) -> list[Range]:
    """The parts of ranges that are in no hole."""
    sorted_holes = _merged(holes)
    result = []
    for start, end in sorted(ranges):
        first = max(bisect.bisect_right(sorted_holes, (start, start)) - 1, 0)
        for low, high in sorted_holes[first:]:
            if low >= end:
                break
            if high <= start:
                continue
            if low > start:
                result.append((start, low))
            start = max(start, high)
        if start < end:
            result.append((start, end))
    return result


def own_memory(layout: Layout, memory: Memory) -> list[Range]:
    """The window, its records and map, slots and depots, and the heap itself."""
    window = layout.of_heap(memory, "window.base")
    extent = layout.of_heap(memory, "window.extent")
    granules = extent >> layout.constant("granule.shift")
    found = [(layout.heap, layout.heap + layout.field("heap").size), (window, window + extent)]

    def add(start: int, size: int) -> None:
        if start != 0:
            found.append((start, start + size))

    add(layout.of_heap(memory, "window.map"), granules)
    add(layout.of_heap(memory, "window.records"), granules * layout.field("record").size)
    slot = layout.field("slot").size
    count = layout.of_heap(memory, "core.count")
    add(layout.of_heap(memory, "core.slots"), count * slot)
    at = layout.of_heap(memory, "core.of_threads")
    while at != 0:
        add(at, slot)
        at = memory.number(at + layout.offset("slot.next"))
    objects = ObjectClasses(layout, memory)
    for table in depot_tables(layout, memory, objects):
        size = table.depots * table.per_depot * shard_bytes(layout, table.keys)
        add(table.shards, size)
    _add_objects(layout, memory, objects, add)
    return found


def _add_objects(
    layout: Layout, memory: Memory, objects: ObjectClasses, add: Callable[[int, int], None]
) -> None:
    size = layout.field("words").size
    slots_of_threads = [s for s in slots(layout, memory) if not s.is_core]
    tables = [int(s.field(layout, "slot.of_objects")[0]) for s in slots_of_threads]
    count = layout.of_heap(memory, "core.count")
    for chunk in objects.chunks:
        add(chunk.classes, objects.per_chunk * layout.field("object").size)
        add(chunk.slabs, objects.per_chunk * layout.field("slab_class").size)
        add(chunk.words, count * size)
        for table in tables:
            if table:
                add(table, 8 * layout.field("core.objects").count)
                add(memory.number(table + 8 * chunk.number), size)


def holding(mappings: list[Mapping], addresses: Iterable[int]) -> list[Range]:
    """The whole mappings in which some addresses lie."""
    starts = [m.start for m in mappings]
    found = set()
    for address in addresses:
        m = mappings[max(bisect.bisect_right(starts, address) - 1, 0)]
        if m.start <= address < m.end:
            found.add((m.start, m.end))
    return sorted(found)


def unused_stacks(mappings: list[Mapping], threads: list[Thread]) -> list[Range]:
    """What lies below the stack pointers: left behind by functions that have returned.

    Only where the mapping is known to be the stack's own: the main thread's, or one with a guard
    that nobody may touch below it. Elsewhere all of it counts.
    """
    starts = [m.start for m in mappings]
    found = []
    for thread in threads:
        i = bisect.bisect_right(starts, thread.sp) - 1
        if i < 0 or thread.sp >= mappings[i].end:
            continue
        m = mappings[i]
        below = mappings[i - 1] if i else None
        guarded = below is not None and below.end == m.start and below.permissions[:3] == "---"
        if m.path == "[stack]" or guarded:
            found.append((m.start, max(m.start, (thread.sp - RED_ZONE) // 8 * 8)))
    return found


def roots(layout: Layout, capture: Capture, more_of_ours: list[Range]) -> list[Range]:
    """What is looked at for pointers; the registers come beside it."""
    ours = own_memory(layout, capture.memory) + more_of_ours
    unused = unused_stacks(capture.mappings, capture.threads)
    return without(readable_data(capture.mappings), ours + unused)
