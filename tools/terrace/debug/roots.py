# SPDX-License-Identifier: MIT OR Apache-2.0
"""Where a program keeps pointers: its writable memory without Terrace's own, stacks, registers."""

import bisect
from collections.abc import Callable, Iterable

import numpy as np

from terrace.debug.layout import Layout
from terrace.debug.memory import Mapping, Memory, Thread
from terrace.debug.objects import ObjectClasses
from terrace.debug.slots import depot_tables, shard_bytes, slots
from terrace.debug.target import Capture, Range

RED_ZONE = 128  # below the stack pointer, that functions may use without moving it
_DESCRIPTION = 4096  # bytes on either side of the thread pointer: libc's struct pthread is there


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
        size = table.count * table.per_depot * shard_bytes(layout, table.keys)
        add(table.shards, size)
    _add_objects(layout, memory, objects, add)
    return found


def _add_objects(
    layout: Layout, memory: Memory, objects: ObjectClasses, add: Callable[[int, int], None]
) -> None:
    size = layout.field("words").size
    slots_of_threads = [s for s in slots(layout, memory) if not s.is_core]
    tables = [int(s.row["of_objects"]) for s in slots_of_threads]
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


def _stack_begins(memory: Memory, thread: Thread, end: int) -> int | None:
    """Where the stack begins that libc knows as the thread's, if the thread is on it.

    glibc keeps the thread's description at that stack's end, with its beginning and its length in
    two words one behind the other. That is the same in a process and in every core file; of the
    guard below it a core file may say nothing. `end`: of the mapping.
    """
    words = memory.sparse((thread.tp - _DESCRIPTION) // 8 * 8, 2 * _DESCRIPTION).view(np.uint64)
    begins, sizes = words[:-1], words[1:]
    found = (begins <= thread.sp) & (sizes < begins)
    ends = begins + np.where(found, sizes, 0)
    found &= (ends > thread.tp) & (ends <= end)
    return int(begins[found].max()) if found.any() else None


def unused_stacks(memory: Memory, mappings: list[Mapping], threads: list[Thread]) -> list[Range]:
    """What lies below the stack pointers: left behind by functions that have returned.

    Only of stacks that are known: the main thread's, and those that libc knows as a thread's.
    Of others all counts.
    """
    starts = [m.start for m in mappings]
    found = []
    for thread in threads:
        i = bisect.bisect_right(starts, thread.sp) - 1
        if i < 0 or thread.sp >= mappings[i].end:
            continue
        m = mappings[i]
        begins: int | None = m.start
        if m.path != "[stack]":
            is_on_it = thread.sp < thread.tp < m.end
            begins = _stack_begins(memory, thread, m.end) if is_on_it else None
        if begins is not None:
            begins = max(begins, m.start)  # a guard is a mapping before it
            found.append((begins, max(begins, (thread.sp - RED_ZONE) // 8 * 8)))
    return found


def roots(layout: Layout, capture: Capture, more_of_ours: list[Range]) -> list[Range]:
    """What is looked at for pointers; the registers come beside it."""
    ours = own_memory(layout, capture.memory) + more_of_ours
    unused = unused_stacks(capture.memory, capture.mappings, capture.threads)
    return without(readable_data(capture.mappings), ours + unused)
