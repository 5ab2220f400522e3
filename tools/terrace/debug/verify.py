# SPDX-License-Identifier: MIT OR Apache-2.0
"""`terrace verify`: what must hold of the heap and can be seen from outside."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from terrace.debug.heap import Heap
from terrace.debug.layout import ints
from terrace.debug.magazines import Magazine, Magazines, in_hands
from terrace.debug.memory import Mapping
from terrace.debug.roots import holding, own_memory, readable_data, without
from terrace.debug.target import Capture, Range, Target


@dataclass(frozen=True)
class Verdict:
    """`capture` tells whether a thread was on its way through the heap."""

    faults: list[str]
    slabs: int
    magazines: int
    blocks: int
    capture: Capture


def _slabs(heap: Heap) -> Iterator[str]:
    """The page map, the records and the free maps agree."""
    w = heap.window
    for span, first in enumerate(heap.first.tolist()):
        home = int(heap.home[span])
        shape = heap.classes.shapes[home]
        at = w.address(first)
        length = int(w.length[first])
        if shape is None:
            if w.homes[first] != 0:
                yield f"large block's span {at:#x}: the page map has home class {w.homes[first]}"
            if w.first[first] != first or w.first[first + length - 1] != first:
                yield f"span {at:#x}: its ends do not find its first granule"
            continue
        if length != shape.granules:
            yield f"slab {at:#x} has {length} granules, its class {shape.granules}"
        granules = slice(first, first + length)
        value = home if home < heap.classes.objects.first else heap.classes.page_value_of_objects
        if (w.homes[granules] != value).any():
            yield f"slab {at:#x}: the page map has another home class than {home}"
        if (w.first[granules] != first).any():
            yield f"slab {at:#x}: a granule does not find its first"
    yield from _free_maps(heap)


def _free_maps(heap: Heap) -> Iterator[str]:
    w = heap.window
    counts = np.where(heap.home == 0, 0, heap.tables[3][heap.home])
    for blocks in np.unique(counts[counts != 0]).tolist():
        rows = np.flatnonzero(counts == blocks)
        slabs = w.owned("slab", heap.first[rows])
        said, places = ints(slabs, "free_blocks"), ints(slabs, "block_count")
        numbers = heap.number[rows][:, None] + np.arange(blocks)
        free = blocks - heap.allocated[numbers].sum(axis=1)
        for row in np.flatnonzero((said != free) | (places != blocks)).tolist():
            slab = w.address(int(heap.first[rows[row]]))
            yield (
                f"slab {slab:#x} says {said[row]} of {places[row]} blocks are free; its map says "
                f"{free[row]} of {blocks}"
            )


def _page_map(heap: Heap) -> Iterator[str]:
    """What is no slab's says nothing."""
    w = heap.window
    for first in heap.unknown.tolist()[:20]:
        yield f"slab {w.address(first):#x} is of no class"
    known = heap.span_of >= 0
    slab = np.zeros(len(w.homes), np.bool_)
    slab[known] = heap.home[heap.span_of[known]] != 0
    for granule in np.flatnonzero(~slab & (w.homes != 0)).tolist()[:20]:
        yield f"{w.address(granule):#x} is in no slab, and the page map has {w.homes[granule]}"


def _spans(heap: Heap) -> Iterator[str]:
    """One behind the other, without gaps or overlaps."""
    w = heap.window
    states, lengths = w.state.tolist(), w.length.tolist()
    unmapped = heap.layout.constant("state.unmapped")
    interior = heap.layout.constant("state.interior")
    granule = 0
    while granule < w.granules:
        if states[granule] == unmapped:
            granule += 1
            continue
        length = lengths[granule]
        if states[granule] == interior or length == 0 or granule + length > w.granules:
            yield f"no span begins at {w.address(granule):#x}, where one has to"
            return
        if w.first[granule] != granule or w.first[granule + length - 1] != granule:
            yield f"span {w.address(granule):#x}: its ends do not find its first granule"
        granule += length


def _magazine(heap: Heap, magazines: Magazines, m: Magazine) -> Iterator[str]:
    name = f"magazine {m.address:#x} ({m.place})"
    if m.kind >= heap.classes.kinds:
        yield f"{name} is of no kind"
        return
    capacity = magazines.words.capacity(m.kind)
    first = heap.layout.constant("magazine.first_place")
    raw = magazines.memory.array(m.address, magazines.words.bytes_of(m.kind) // 8, "<u8")
    limit = int(raw[0])
    if not m.count <= limit <= capacity:
        yield f"{name} holds {m.count}, its limit is {limit}, there is room for {capacity}"
        return
    if raw[first - 1] != 0 or raw[first + limit] != 0:
        yield f"{name} has no end"
    if (raw[first : first + limit] == 0).any():
        yield f"{name} ends too early"
    rounds = raw[first : first + m.count]
    numbers = heap.numbers_at(rounds)
    good = numbers >= 0
    good[good] = heap.addresses(numbers[good]).astype(np.uint64) == rounds[good]
    for word in rounds[~good].tolist():
        yield f"{name} holds {word:#x}, where no block begins"
    numbers = numbers[good]
    for n in numbers[~heap.allocated[numbers]].tolist():
        address = heap.address(n)
        yield f"{name} holds {address:#x}, which is free in its slab, too"
    if m.home is not None and m.count:
        classes = heap.classes_of(numbers)
        if (classes != heap.classes.class_of_home[m.home]).any():
            yield f"{name} holds blocks of another size class"


def _magazines(heap: Heap, magazines: Magazines) -> Iterator[str]:
    for place in magazines.nameless:
        yield f"{place}: the word names no magazine"
    seen: dict[int, Magazine] = {}
    held: dict[int, Magazine] = {}
    for m in magazines:
        if m.address in seen:
            yield f"magazine {m.address:#x} is in the {seen[m.address].place} and the {m.place}"
            continue
        seen[m.address] = m
        yield from _magazine(heap, magazines, m)
        for block in magazines.rounds(m).tolist():
            if block in held:
                yield f"block {block:#x} is in the {held[block].place} and the {m.place}"
            held[block] = m


def verify(target: Target) -> Verdict:
    layout = target.layout

    def ours(mappings: list[Mapping]) -> list[Range]:
        """Not the blocks: only what is known of them. Magazines lie among them."""
        own = own_memory(layout, target.memory)
        window = layout.of_heap(target.memory, "window.base")
        of_magazines = _magazine_slabs(target)
        if layout.constant("magazine.guarded"):  # they lie anywhere, between guards
            extent = layout.of_heap(target.memory, "window.extent")
            return without(readable_data(mappings), [(window, window + extent)])
        metadata = [start for start, _ in own if start != window]
        return sorted({*holding(mappings, metadata), *of_magazines})

    capture = target.capture(ours)
    heap = Heap(layout, capture.memory, target.umem)
    magazines = Magazines(layout, capture.memory, heap.classes)
    faults = [*_spans(heap), *_slabs(heap), *_page_map(heap), *_magazines(heap, magazines)]
    if len(in_hands(heap, magazines)) and not capture.inside:
        capture.notes.append("a thread has a magazine in its hands")
    blocks = sum(m.count for m in magazines)
    count = sum(1 for _ in magazines)
    return Verdict(faults, int((heap.home != 0).sum()), count, blocks, capture)


def _magazine_slabs(target: Target) -> list[Range]:
    """The slabs that magazines lie in, by the page map: it is asked while the process stands."""
    layout, memory = target.layout, target.memory
    base, shift = layout.of_heap(memory, "window.base"), layout.constant("granule.shift")
    granules = layout.of_heap(memory, "window.extent") >> shift
    homes = memory.sparse(layout.of_heap(memory, "window.map"), granules)
    first = layout.constant("home.first_magazine")
    found = np.flatnonzero((homes >= first) & (homes < first + layout.constant("magazine.kinds")))
    return [(base + (g << shift), base + ((g + 1) << shift)) for g in found.tolist()]


def lines(target: Target, verdict: Verdict) -> list[str]:
    c = verdict.capture
    what = (
        f"{verdict.slabs:,} slabs, {verdict.magazines:,} magazines with {verdict.blocks:,} blocks"
    )
    found = f"{len(verdict.faults)} faults" if verdict.faults else "no fault"
    result = [*verdict.faults, f"{target.title}: {found} in {what}", *c.notes]
    if c.pause is not None:
        result.append(f"the process stood still for {c.pause * 1000:.1f} ms")
    elif c.copied:
        result.append("no thread ran meanwhile, and none was stopped")
    if c.inside and verdict.faults:
        result.append("a thread was within Terrace: what it was about to do may show as a fault")
    return result
