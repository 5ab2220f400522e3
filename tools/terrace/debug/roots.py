# SPDX-License-Identifier: MIT OR Apache-2.0
"""Where a program keeps pointers: its writable memory without Terrace's own, stacks, registers."""

from __future__ import annotations

import bisect
from collections.abc import Iterable

from terrace.debug.layout import Layout
from terrace.debug.memory import Mapping, Memory, Thread
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
    for level in ("processors", "nodes"):
        per_depot = layout.of_heap(memory, f"{level}.per_depot")
        depots = layout.of_heap(memory, f"{level}.depots")
        size = depots * per_depot * layout.field("shard").size
        add(layout.of_heap(memory, f"{level}.shards"), size)
    return found


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
