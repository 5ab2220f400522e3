# SPDX-License-Identifier: MIT OR Apache-2.0
"""Blocks: every place of every slab and every large block has a number, in order of addresses.

A block has an owner, whose name is what people know it by. A slab's owner is its size class, or
the object cache that has it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from terrace.debug.layout import Layout, UmemLayout
from terrace.debug.memory import Bytes, Memory, Words
from terrace.debug.objects import ObjectClasses
from terrace.debug.umem.caches import Cache, CacheReader, LargeObjects

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Owner:
    """Whose blocks they are. `size` is 0 where each block has its own."""

    name: str
    size: int
    size_class: int  # 0: large blocks
    is_aligned: bool = False
    cache: int = 0  # the address of the object cache; 0: blocks are malloc's
    is_handle: bool = False  # a block that stands for a free object that is no such block


LARGE = Owner("large", 0, 0)


@dataclass(frozen=True)
class Shape:
    """Where in a slab blocks lie: src/heap/placement.h."""

    stride: int
    per_group: int
    group_bytes: int
    blocks: int
    granules: int

    def offset_of(self, nth: int) -> int:
        return nth // self.per_group * self.group_bytes + nth % self.per_group * self.stride


def _columns(raw: Bytes, offset: int, size: int) -> npt.NDArray[Any]:
    """A field of all records."""
    part = np.ascontiguousarray(raw[:, offset : offset + size])
    return part.view(f"<u{size}")[:, 0] if size in (1, 2, 4, 8) else part


class Classes:
    """Size classes, home classes and shapes, and those of object caches: a home class each."""

    def __init__(self, layout: Layout, memory: Memory, umem: UmemLayout | None = None) -> None:
        self.count = layout.constant("class.count")
        self.homes = layout.constant("home.count")
        self.first_magazine = layout.constant("home.first_magazine")
        self.page_value_of_objects = layout.constant("home.objects")
        self.kinds = layout.constant("magazine.kinds")
        self.objects = ObjectClasses(layout, memory)
        self.sizes: list[int] = memory.array(
            layout.address("class_sizes"), self.count, "<u4"
        ).tolist()
        self.of_home: list[int] = memory.array(
            layout.address("classes_of_homes"), 256, "u1"
        ).tolist()
        plain = layout.constant("class.plain")
        self.owners = {0: LARGE} | {
            c: Owner(
                f"{self.sizes[c]}{' aligned' if c > plain else ''}", self.sizes[c], c, c > plain
            )
            for c in range(1, self.count)
        }
        size = layout.field("shape").size
        table = layout.of_heap(memory, "slabs.shapes")
        self._layout, self._memory = layout, memory
        of_class = [self._shape(table + c * size) for c in range(self.count)]
        magazines = layout.address("magazine_shapes")
        self.shapes: list[Shape | None] = [None] * self.objects.first
        for home in range(1, 256):
            c = self.of_home[home]
            if 0 < c < self.count and home < self.homes:
                self.shapes[home] = of_class[c]
        for kind in range(self.kinds):
            self.shapes[self.first_magazine + kind] = self._shape(magazines + kind * size)
        self._add_objects(umem)
        self.homes_of_large: dict[int, int] = {}  # by the cache's address
        self.large = LargeObjects(umem, memory) if umem is not None else None
        for cache in self.large.caches if self.large is not None else ():
            self._add_large(cache)
        self.class_of_home = np.array(self.of_home, np.int64)
        self.size_of_home = np.array(
            [self.owners[c].size if c in self.owners else 0 for c in self.of_home], np.int64
        )

    def _add_objects(self, umem: UmemLayout | None) -> None:
        """A cache's objects have its name, and the length that it was created with."""
        objects = self.objects
        caches = CacheReader(umem, self._memory) if umem is not None else None
        rows = list(zip(*(objects.shapes[n].tolist() for n in objects.shapes), strict=True))
        for number, owner in enumerate(objects.columns["owner"].tolist()):
            home = objects.first + number
            self.of_home.append(home)
            if not objects.is_sound(number):
                self.shapes.append(None)
                continue
            shape = Shape(*rows[number])
            self.shapes.append(shape)
            cache = caches.at(owner) if caches is not None and owner else None
            name = cache.name if cache is not None else f"cache {owner:#x}"
            size = cache.size if cache is not None and cache.size <= shape.stride else shape.stride
            is_handle = cache is not None and cache.has_handles
            if is_handle:
                name, size = f"handles of {name}", shape.stride
            self.owners[home] = Owner(name, size, home, cache=owner, is_handle=is_handle)

    def _add_large(self, cache: Cache) -> None:
        """No home class has them: they get one that is only known here."""
        home = self.homes_of_large[cache.address] = len(self.shapes)
        self.of_home.append(home)
        self.shapes.append(None)
        self.owners[home] = Owner(cache.name, cache.size, home, cache=cache.address)

    def _shape(self, address: int) -> Shape:
        names = ("stride", "per_group", "group_bytes", "blocks", "granules")
        fields = (self._layout.field(f"shape.{name}") for name in names)
        return Shape(*(self._memory.number(address + f.offset, f.size) for f in fields))

    def is_magazine(self, home: int) -> bool:
        return self.first_magazine <= home < self.first_magazine + self.kinds


class Window:
    """The range of addresses in which all blocks lie, and its records."""

    def __init__(self, layout: Layout, memory: Memory) -> None:
        self.layout = layout
        self.shift = layout.constant("granule.shift")
        self.base = layout.of_heap(memory, "window.base")
        self.extent = layout.of_heap(memory, "window.extent")
        self.map = layout.of_heap(memory, "window.map")
        self.records = layout.of_heap(memory, "window.records")
        self.granules = self.extent >> self.shift
        self.homes = memory.sparse(self.map, self.granules)
        size = layout.field("record").size
        self._raw = memory.sparse(self.records, self.granules * size).reshape(-1, size)
        self.state = self.field("record.state")
        self.length = self.field("record.granules").astype(np.int64)
        self.first = self.field("record.first").astype(np.int64)

    def field(self, name: str) -> npt.NDArray[Any]:
        f = self.layout.field(name)
        return _columns(self._raw, f.offset, f.size * f.count)

    def part(self, name: str, rows: Ints) -> npt.NDArray[Any]:
        """A field of the owner's part of some records."""
        f = self.layout.field(name)
        offset = self.layout.offset("record.owners") + f.offset
        return _columns(self._raw[rows], offset, f.size * f.count)

    def address(self, granule: int) -> int:
        return self.base + (granule << self.shift)

    def spans(self, state: str) -> Ints:
        """First granules of the spans in a state."""
        rows = np.flatnonzero(self.state == self.layout.constant(f"state.{state}"))
        # While the process runs a record may be half written.
        return rows[(self.length[rows] > 0) & (rows + self.length[rows] <= self.granules)]


class Heap:
    """All blocks. `allocated` is what no slab has free; Magazines take theirs out of it."""

    def __init__(self, layout: Layout, memory: Memory, umem: UmemLayout | None = None) -> None:
        self.layout = layout
        self.memory = memory
        self.classes = Classes(layout, memory, umem)
        self.window = Window(layout, memory)
        self._number()
        self._read_free_maps()
        self._find_large_objects()

    def _number(self) -> None:
        w = self.window
        slabs, large = w.spans("slab"), w.spans("large")
        homes = w.homes[slabs].astype(np.int64)
        of_objects = homes == self.classes.page_value_of_objects
        homes[of_objects] = w.field("record.number")[slabs[of_objects]]
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
        start[~is_large] = w.part("slab.block_offset", self.first[~is_large])
        large_rows = self.first[is_large]
        granule = w.part("large_record.granule", large_rows).astype(np.int64)
        start[is_large] = (granule << w.shift) + w.part("large_record.line", large_rows)
        self.start = start
        self.requested = np.zeros(len(self.first), np.int64)
        self.requested[is_large] = w.part("large_record.requested", large_rows).astype(np.int64)
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
                self.home_of_owner[row] = self.classes.homes_of_large[cache.address]
                self.large_objects[self.number[row]] = True

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
        lies = w.part("large_record.lies", self.first[large])
        self.allocated[self.number[large]] = lies != self.layout.constant("lies.kept")
        counts = np.where(self.home == 0, 0, self.tables[3][self.home])
        for blocks in np.unique(counts[counts != 0]).tolist():
            rows = np.flatnonzero(counts == blocks)
            free = w.part("slab.free_map", self.first[rows])[:, : (blocks + 7) // 8]
            bits = np.unpackbits(free, axis=1, count=blocks, bitorder="little")
            self.allocated[self.number[rows][:, None] + np.arange(blocks)] = bits == 0

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
        return result

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
        return np.where(home == 0, self.requested[span], self.classes.size_of_home[home])

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
        classes, leaving = layout.field("slabs.classes"), layout.field("slab_class.leaving")
        sectors, slab = layout.field("leaving.sectors"), layout.field("leaving.slab")
        raw = memory.sparse(layout.heap + classes.offset, classes.size * classes.count)
        rows = raw.reshape(-1, classes.size)
        rows = np.concatenate([rows, self.classes.objects.leaving(layout, memory)])
        entries = rows[:, leaving.offset : leaving.offset + leaving.size * leaving.count]
        entries = np.ascontiguousarray(entries).reshape(-1, leaving.size)
        begun = _columns(entries, sectors.offset, sectors.size) != 0
        slabs = _columns(entries, slab.offset, slab.size)[begun]
        counts = np.diff(np.append(self.number, self.total))
        return np.repeat(np.isin(self.first, slabs), counts)

    @cached_property
    def of_library(self) -> Bools:
        """Blocks that no program ever has: memory of magazines, and handles."""
        first = self.classes.first_magazine
        homes = {*range(first, first + self.classes.kinds)}
        homes |= {o.size_class for o in self.classes.owners.values() if o.is_handle}
        return self._of_homes(homes)

    @cached_property
    def of_magazines(self) -> Bools:
        """Which blocks are memory of magazines."""
        first = self.classes.first_magazine
        return self._of_homes({*range(first, first + self.classes.kinds)})

    def _of_homes(self, homes: set[int]) -> Bools:
        counts = np.diff(np.append(self.number, self.total))
        return np.repeat(np.isin(self.home, list(homes)), counts)
