# SPDX-License-Identifier: MIT OR Apache-2.0
"""Blocks: every place of every slab and every large block has a number, in order of addresses.

Behind them come objects that are no blocks, as far as UMEM_DEBUG looks at them.
"""

from functools import cached_property

import numpy as np
import numpy.typing as npt

from terrace.debug.classes import Classes, Owner, Shape
from terrace.debug.layout import Ints, Layout, UmemLayout
from terrace.debug.memory import Memory, Words
from terrace.debug.umem.apart import Apart, ApartReader
from terrace.debug.window import Window

Bools = npt.NDArray[np.bool_]


class Heap:
    """All blocks. `allocated` is what no slab has free; Magazines take theirs out of it."""

    def __init__(self, layout: Layout, memory: Memory, umem: UmemLayout | None = None) -> None:
        self.layout, self.memory = layout, memory
        self.classes = Classes(layout, memory, umem)
        self.window = Window(layout, memory)
        self._number()
        self._read_free_maps()
        self._find_large_objects()
        self.spans_of_window = len(self.first)  # of all spans; behind them are those apart
        self.apart = Apart()
        self.apart_edges = np.zeros((2, 0), np.uint64)  # where each begins and ends

    def _number(self) -> None:
        w = self.window
        slabs, large = w.spans("slab"), w.spans("large")
        homes = w.homes[slabs].astype(np.int64)
        of_objects = homes == self.classes.page_value_of_objects
        homes[of_objects] = w.rows["number"][slabs[of_objects]]
        shapes = self.classes.shapes
        known = np.array([h < len(shapes) and shapes[h] is not None for h in homes.tolist()], bool)
        self.unknown = slabs[~known]  # of no class that there is
        first = np.concatenate([slabs[known], large])
        order = np.argsort(first, kind="stable")
        self.first = first[order]  # of each span, its first granule
        self.home = np.concatenate([homes[known], np.zeros(len(large), np.int64)])[order]
        blocks = [s.blocks if s else 1 for s in self.classes.shapes]
        counts = np.array(blocks, np.int64)[self.home]
        self.number = np.cumsum(counts) - counts  # of each span, the number of its first block
        self.total = int(counts.sum())
        is_large = self.home == 0
        start = np.zeros(len(self.first), np.int64)  # of the first block in its span
        start[~is_large] = w.owned("slab", self.first[~is_large])["block_offset"]
        of_large = w.owned("large_record", self.first[is_large])
        start[is_large] = of_large["line"]
        self.start = start
        self.requested = np.zeros(len(self.first), np.int64)
        self.requested[is_large] = of_large["requested"]
        granules = np.array([s.granules if s else 1 for s in self.classes.shapes], np.int64)
        lengths = np.where(is_large, w.length[self.first], granules[self.home])
        self.span_of = np.full(w.granules, -1, np.int32)  # by granule
        order = np.repeat(np.arange(len(self.first)), lengths)
        within = np.arange(len(order)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        at = np.repeat(self.first, lengths) + within
        inside = at < w.granules
        self.span_of[at[inside]] = order[inside]

    def _find_large_objects(self) -> None:
        """`home_of_owner` is by span, as `home` is, which says how blocks lie in it."""
        self.home_of_owner = self.home.copy()
        self.large_objects: Bools = np.zeros(self.total, np.bool_)  # by block
        large = self.classes.large
        if large is None or not large.caches:
            return
        rows = np.flatnonzero(self.home == 0)
        addresses, sizes = self.addresses(self.number[rows]), self.requested[rows]
        for row, address, size in zip(rows, addresses.tolist(), sizes.tolist(), strict=True):
            cache = large.cache_of(address, size)
            if cache is not None:
                self.home_of_owner[row] = self.classes.homes_apart[cache.address]
                self.large_objects[self.number[row]] = True

    def ranges(self) -> list[tuple[int, int]]:
        """Where blocks lie."""
        window = self.window.base, self.window.base + self.window.extent
        return [window, *((int(a), int(b)) for a, b in self.apart_edges.T)]

    def is_near(self, words: Words) -> Bools:
        """Which numbers may be addresses of blocks."""
        near: Bools = (words - np.uint64(self.window.base)) < np.uint64(self.window.extent)
        starts, ends = self.apart_edges
        if len(starts):
            near |= (words >= starts[0]) & (words < ends[-1])
        return near

    def unknown_ranges(self) -> list[tuple[int, int]]:
        """Slabs of no class: what is in them is not looked at one by one, and keeps blocks."""
        w = self.window
        sizes = w.length[self.unknown] << w.shift
        return [
            (w.address(int(first)), w.address(int(first)) + int(size))
            for first, size in zip(self.unknown, sizes, strict=True)
        ]

    def _read_free_maps(self) -> None:
        self.allocated: Bools = np.zeros(self.total, np.bool_)
        w = self.window
        large = np.flatnonzero(self.home == 0)
        lies = w.owned("large_record", self.first[large])["lies"]
        self.allocated[self.number[large]] = lies != self.layout.constant("lies.kept")
        counts = np.where(self.home == 0, 0, self.tables[3][self.home])
        for blocks in np.unique(counts[counts != 0]).tolist():
            rows = np.flatnonzero(counts == blocks)
            words = np.ascontiguousarray(w.owned("slab", self.first[rows])["free_map"])
            free = words.view(np.uint8).reshape(len(rows), -1)[:, : (blocks + 7) // 8]
            bits = np.unpackbits(free, axis=1, count=blocks, bitorder="little")
            self.allocated[self.number[rows][:, None] + np.arange(blocks)] = bits == 0

    def add_apart(self, umem: UmemLayout) -> None:
        """Objects that are no blocks: behind all others, whatever their addresses; a span each."""
        classes, w = self.classes, self.window
        self.apart = apart = ApartReader(umem, self.memory).read((w.base, w.base + w.extent))
        if not apart.objects:
            return
        for cache in apart.caches.values():
            if cache.address not in classes.homes_apart:
                classes.add_apart(cache)
        self.__dict__.pop("tables", None)  # there are more homes now
        at = np.array([o.address for o in apart.objects], np.int64)
        sizes = np.array([o.size for o in apart.objects], np.int64)
        homes = np.array([classes.homes_apart[o.cache] for o in apart.objects], np.int64)
        self.apart_edges = np.stack([at, at + np.maximum(sizes, 1)]).astype(np.uint64)
        from_base = at - w.base
        self.first = np.append(self.first, from_base >> w.shift)
        self.start = np.append(self.start, from_base & ((1 << w.shift) - 1))
        self.home = np.append(self.home, homes)
        self.home_of_owner = np.append(self.home_of_owner, homes)
        self.requested = np.append(self.requested, sizes)
        self.number = np.append(self.number, self.total + np.arange(len(at)))
        self.total += len(at)
        is_free = np.array([o.is_free for o in apart.objects], np.bool_)
        self.allocated = np.append(self.allocated, ~is_free)
        self.large_objects = np.append(self.large_objects, np.ones(len(at), np.bool_))

    @cached_property
    def tables(self) -> tuple[Ints, ...]:
        """Of shapes, by home: group bytes, blocks of a group, stride, blocks of a slab."""
        whole = Shape(1 << 62, 1, 1 << 62, 1, 1)
        shapes = [s or whole for s in self.classes.shapes]
        return tuple(
            np.array([getattr(s, name) for s in shapes], np.int64)
            for name in ("group_bytes", "per_group", "stride", "blocks")
        )

    def numbers_at(self, addresses: Words) -> Ints:
        """The block that each address points to or into; -1 where there is none."""
        w = self.window
        offset = (addresses - np.uint64(w.base)).view(np.int64)
        result = np.full(len(offset), -1, np.int64)
        within = np.flatnonzero((offset >= 0) & (offset < w.extent))
        offset = offset[within]
        span = self.span_of[offset >> w.shift]
        known = np.flatnonzero(span >= 0)
        within, offset, span = within[known], offset[known], span[known]
        offset = offset - (self.first[span] << w.shift) - self.start[span]
        home = self.home[span]
        group_bytes, per_group, stride, blocks = (table[home] for table in self.tables)
        group = offset // group_bytes
        nth = (offset - group * group_bytes) // stride
        number = group * per_group + nth
        limit = self.requested[span]
        good = (offset >= 0) & (nth < per_group) & (number < blocks)
        good &= (home != 0) | (offset < np.maximum(limit, 1))
        result[within[good]] = (self.number[span] + number)[good]
        starts, ends = self.apart_edges
        if len(starts):
            nth = np.searchsorted(starts, addresses, "right") - 1
            inside = (nth >= 0) & (addresses < ends[nth])
            result[inside] = (self.total - len(starts)) + nth[inside]
        return result

    def number_at(self, address: int) -> int:
        return int(self.numbers_at(np.array([address], np.uint64))[0])

    def address(self, number: int) -> int:
        return int(self.addresses(np.array([number], np.int64))[0])

    def blocks_of(self, home: int) -> Ints:
        """All places of the slabs of a class."""
        rows = np.flatnonzero(self.home_of_owner == home)
        blocks = int(self.tables[3][home])
        numbers: Ints = (self.number[rows][:, None] + np.arange(blocks)).reshape(-1)
        return numbers

    def span_of_number(self, numbers: Ints) -> Ints:
        return np.searchsorted(self.number, numbers, "right") - 1

    def addresses(self, numbers: Ints) -> Ints:
        span = self.span_of_number(numbers)
        nth = numbers - self.number[span]
        group_bytes, per_group, stride, _ = (table[self.home[span]] for table in self.tables)
        inside = np.where(nth == 0, 0, nth // per_group * group_bytes + nth % per_group * stride)
        at = (self.first[span] << self.window.shift) + self.start[span] + inside
        return self.window.base + at

    def sizes(self, numbers: Ints) -> Ints:
        """Bytes of each block: of its class, of large ones what was asked for."""
        span = self.span_of_number(numbers)
        home = self.home_of_owner[span]
        own_size = (home == 0) | (span >= self.spans_of_window)
        return np.where(own_size, self.requested[span], self.classes.size_of_home[home])

    def classes_of(self, numbers: Ints) -> Ints:
        """The size class of each block, 0 of large ones; of objects their home class."""
        span = self.span_of_number(numbers)
        classes: Ints = self.classes.class_of_home[self.home_of_owner[span]]
        return classes

    def owner(self, number: int) -> Owner:
        return self.classes.owners[int(self.classes_of(np.array([number], np.int64))[0])]

    def losing_pages(self) -> Bools:
        """Blocks of slabs whose free pages a thread is giving back: some look allocated."""
        layout, memory = self.layout, self.memory
        classes = layout.field("slabs.classes")
        rows = layout.rows(memory, "slab_class", layout.heap + classes.offset, classes.count)
        leaving = np.concatenate([rows, self.classes.objects.slabs()])["leaving"]
        entries = np.ascontiguousarray(leaving).view(layout.row("leaving"))
        slabs = entries["slab"][entries["sectors"] != 0]
        return self._of_spans(np.isin(self.first, slabs))

    @cached_property
    def of_magazines(self) -> Bools:
        """Which blocks are memory of magazines."""
        first = self.classes.first_magazine
        return self._of_spans((self.home >= first) & (self.home < first + self.classes.kinds))

    @cached_property
    def of_library(self) -> Bools:
        """Blocks that no program ever has: memory of magazines, and handles."""
        handles = [o.size_class for o in self.classes.owners.values() if o.is_handle]
        return self.of_magazines | self._of_spans(np.isin(self.home, handles))

    def _of_spans(self, spans: Bools) -> Bools:
        """Of all blocks of some spans."""
        return np.repeat(spans, np.diff(np.append(self.number, self.total)))
