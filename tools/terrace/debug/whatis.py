# SPDX-License-Identifier: MIT OR Apache-2.0
"""`terrace whatis`: what lies at an address."""

import numpy as np

from terrace.debug.heap import Heap
from terrace.debug.magazines import Magazines
from terrace.debug.memory import Mapping
from terrace.debug.roots import own_memory
from terrace.debug.target import Target
from terrace.debug.umem.whatis import malloc_lines, record_lines, segment_lines


def _distance(start: int, address: int) -> str:
    return f"{start:#x}" + (f"+{address - start:#x}" if address != start else "")


def _foreign(target: Target, address: int, mappings: list[Mapping]) -> str:
    for start, end in own_memory(target.layout, target.memory):
        if start <= address < end:
            return f"{address:#x} is Terrace's own data ({_distance(start, address)})"
    mapping = next((m for m in mappings if m.start <= address < m.end), None)
    if mapping is None:
        return f"{address:#x} is not mapped"
    of = mapping.path or "anonymous memory"
    return (
        f"{address:#x} is not Terrace's: {of}, {_distance(mapping.start, address)} "
        f"({mapping.permissions})"
    )


def _block(heap: Heap, magazines: Magazines, address: int, number: int) -> str:
    numbers = np.array([number], np.int64)
    start = heap.address(number)
    size = int(heap.sizes(numbers)[0])
    span = int(heap.span_of_number(numbers)[0])
    slab = heap.window.address(int(heap.first[span]))
    home = int(heap.home[span])
    if heap.classes.is_magazine(home):
        return f"{_distance(start, address)} is memory of a magazine, slab {slab:#x}"
    owner = heap.owner(number)
    if span >= heap.spans_of_window:
        state = "allocated" if heap.allocated[number] else "freed, and waits"
        return f"{_distance(start, address)} is {state}, cache {owner.name}"
    where = f"large block of {size:,} bytes, span {slab:#x}"
    if owner.cache:
        where = f"cache {owner.name}, slab {slab:#x}"
    elif home:
        where = f"size class {owner.name}, slab {slab:#x}"
    state = "allocated"
    if not heap.allocated[number]:
        state = "freed, " + ("in its slab" if home else "kept by a slot for the next request")
    else:
        for magazine in magazines:
            if magazine.count and start in magazines.rounds(magazine).tolist():
                state = f"freed, in the {magazine.place}"
                break
    return f"{_distance(start, address)} is {state}, {where}"


def _between(heap: Heap, address: int) -> str:
    granule = (address - heap.window.base) >> heap.window.shift
    span = int(heap.span_of[granule])
    if span >= 0:
        first = heap.window.address(int(heap.first[span]))
        what = "slab" if heap.home[span] else "span"
        return f"{address:#x} lies in {what} {first:#x}, in no block of it"
    starts = np.flatnonzero(heap.window.length[: granule + 1])
    layout = heap.layout
    first = int(starts[-1]) if len(starts) else granule
    names = ("unmapped", "clean", "dirty", "purging")
    while first > 0 and heap.window.state[first] == layout.constant("state.interior"):
        first -= 1
    state = int(heap.window.state[first])
    name = next((n for n in names if layout.constant(f"state.{n}") == state), "unknown")
    if name == "unmapped":
        return f"{address:#x} lies in the window of Terrace, in a range that is not its own"
    granules = int(heap.window.length[first])
    return (
        f"{address:#x} lies in a free span ({name}) of {granules} granules at "
        f"{heap.window.address(first):#x}"
    )


def lines(target: Target, address: int) -> list[str]:
    """One, and what is remembered of an object."""
    heap = Heap(target.layout, target.memory, target.umem)
    if target.umem is not None:
        heap.add_apart(target.umem)
    window = heap.window
    number = heap.number_at(address)
    if number < 0 and not window.base <= address < window.base + window.extent:
        return [_foreign(target, address, target.mappings()), *segment_lines(target, address)]
    if number < 0:
        return [_between(heap, address), *segment_lines(target, address)]
    magazines = Magazines(target.layout, target.memory, heap.classes)
    return [
        _block(heap, magazines, address, number), *malloc_lines(target, heap, number),
        *record_lines(target, heap, number), *segment_lines(target, address),
    ]  # fmt: skip
