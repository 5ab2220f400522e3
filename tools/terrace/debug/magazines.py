# SPDX-License-Identifier: MIT OR Apache-2.0
"""Magazines: free blocks that slots and depots hold. src/level/magazine.h has how they look."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from terrace.debug.classes import Classes
from terrace.debug.heap import Heap
from terrace.debug.layout import Layout
from terrace.debug.memory import Bytes, Memory, UnreadableError, Words
from terrace.debug.objects import ObjectClasses, words_of_slots
from terrace.debug.target import Range


@dataclass(frozen=True)
class Magazine:
    """`home` is the home class whose word or stack it was found in; None: an empty one."""

    address: int
    kind: int
    count: int
    place: str
    home: int | None


@dataclass(frozen=True)
class Slot:
    """A slot of the core level, of a core or of a thread."""

    name: str
    raw: Bytes
    address: int
    is_core: bool = True

    def field(self, layout: Layout, name: str) -> Words:
        f = layout.field(name)
        part = self.raw[f.offset : f.offset + f.size * f.count]
        numbers: Words = part.view(f"<u{f.size}")
        return numbers


def slots(layout: Layout, memory: Memory) -> list[Slot]:
    """All there are."""
    size = layout.field("slot").size
    first = layout.of_heap(memory, "core.slots")
    count = layout.of_heap(memory, "core.count")
    raw = memory.sparse(first, count * size).reshape(-1, size)
    found = [Slot(f"slot {i}", raw[i], first + i * size) for i in range(count)]
    at = layout.of_heap(memory, "core.of_threads")
    in_use = layout.constant("slot.in_use")
    while at != 0 and len(found) < (1 << 20):
        slot = Slot("", memory.sparse(at, size), at)
        owner = int(slot.field(layout, "slot.owner")[0])
        name = f"slot of thread {owner & ~in_use}" + ("" if owner & in_use else " (ended)")
        found.append(Slot(name, slot.raw, at, is_core=False))
        at = int(slot.field(layout, "slot.next")[0])
    return found


def object_words(
    layout: Layout, memory: Memory, classes: ObjectClasses, all_slots: list[Slot]
) -> list[tuple[str, int, Bytes]]:
    """Slot, number of its first class, and words, of each chunk of object caches."""
    tables = [
        (s.name, 0 if s.is_core else int(s.field(layout, "slot.of_objects")[0]), s.is_core)
        for s in all_slots
    ]
    return words_of_slots(layout, memory, classes, tables)


@dataclass(frozen=True)
class Stacks:
    """The stacks of one shard of a depot: a row each."""

    name: str
    raw: Bytes

    def field(self, layout: Layout, name: str) -> Words:
        """Of all stacks: a column, or a table where there are several."""
        f = layout.field(name)
        part = np.ascontiguousarray(self.raw[:, f.offset : f.offset + f.size * f.count])
        numbers: Words = part.view(f"<u{f.size}")
        return numbers if f.count > 1 else numbers[:, 0]


@dataclass(frozen=True)
class DepotTable:
    """The depots of a level: of malloc's blocks, or of a chunk of object caches."""

    level: str
    first_home: int  # of key 0
    keys: int
    shards: int  # where they lie
    depots: int
    per_depot: int


_LEVELS = (("processor", "processors"), ("node", "nodes"))
_MOST_DEPOTS, _MOST_SHARDS = 4096, 64  # of a depot; of more, the memory is damaged


def _can_be(shards: int, depots: int, per_depot: int) -> bool:
    return shards != 0 and depots <= _MOST_DEPOTS and per_depot <= _MOST_SHARDS


def depot_tables(layout: Layout, memory: Memory, classes: ObjectClasses) -> Iterator[DepotTable]:
    """All that there are."""
    for level, names in _LEVELS:
        fields = (f"{names}.shards", f"{names}.depots", f"{names}.per_depot")
        own = [layout.of_heap(memory, field) for field in fields]
        keys = layout.field("shard.stacks").count
        if not _can_be(*own):
            continue
        yield DepotTable(level, 0, keys, *own)
        field = layout.field(f"{names}.objects")
        for chunk in classes.chunks:
            at = layout.heap + field.offset + chunk.number * field.size
            raw = memory.read(at, field.size)
            part = [layout.within(raw, f"depots.{n}") for n in ("shards", "count", "per_depot")]
            first = classes.first + chunk.number * classes.per_chunk
            if _can_be(*part) and layout.within(raw, "depots.keys") == classes.per_chunk:
                yield DepotTable(level, first, classes.per_chunk, *part)


def shard_bytes(layout: Layout, keys: int) -> int:
    stacks = layout.field("shard.stacks")
    return stacks.offset + stacks.size * keys


def shards(
    layout: Layout, memory: Memory, classes: ObjectClasses
) -> Iterator[tuple[DepotTable, Stacks]]:
    """Of all tables of depots."""
    stacks = layout.field("shard.stacks")
    for table in depot_tables(layout, memory, classes):
        size = shard_bytes(layout, table.keys)
        each = table.per_depot
        for depot, nth in itertools.product(range(table.depots), range(each)):
            at = table.shards + (depot * each + nth) * size
            raw = memory.sparse(at + stacks.offset, stacks.size * table.keys)
            name = f"{table.level} {depot}, shard {nth}"
            yield table, Stacks(name, raw.reshape(-1, stacks.size))


class Words2Magazines:
    """Tells which magazine a word of a slot names."""

    def __init__(self, layout: Layout, memory: Memory, classes: Classes) -> None:
        self._memory = memory
        self._classes = classes
        self._origin = layout.address("origin")
        self._guarded = layout.constant("magazine.guarded") != 0
        self._map = layout.of_heap(memory, "window.map")
        self._base = layout.of_heap(memory, "window.base")
        self._extent = layout.of_heap(memory, "window.extent")
        self._shift = layout.constant("granule.shift")
        self._first_place = layout.constant("magazine.first_place")
        self._bytes = [layout.constant(f"magazine.bytes_of_{k}") for k in range(classes.kinds)]
        self.guarded_kind = classes.kinds - 1
        self.smallest = layout.constant("magazine.smallest_word")

    def capacity(self, kind: int) -> int:
        return self._bytes[kind] // 8 - self._first_place - 1

    def bytes_of(self, kind: int) -> int:
        return self._bytes[kind]

    def kind_at(self, address: int) -> int | None:
        """Of the memory of magazines there; None: it is none."""
        if self._guarded:
            return self.guarded_kind
        offset = address - self._base
        if not 0 <= offset < self._extent:
            return None
        home = self._memory.number(self._map + (offset >> self._shift), 1)
        return home - self._classes.first_magazine if self._classes.is_magazine(home) else None

    @cached_property
    def _kinds(self) -> npt.NDArray[np.int64]:
        """By granule; -1: no magazines."""
        homes = self._memory.sparse(self._map, self._extent >> self._shift).astype(np.int64)
        kinds = homes - self._classes.first_magazine
        return np.where((kinds >= 0) & (kinds < self._classes.kinds), kinds, -1)

    def counts(self, words: Words) -> npt.NDArray[np.int64]:
        """Blocks in the magazines that words name, all at once; 0 where a word names none."""
        behind = np.uint64(self._origin % (1 << 64)) + words
        offset = (behind - np.uint64(8) - np.uint64(self._base)).view(np.int64)
        good = (words >= self.smallest) & ((offset >= 0) & (offset < self._extent))
        if self._guarded:
            good = words >= self.smallest
            kinds = np.full(words.shape, self.guarded_kind)
        else:
            kinds = self._kinds[np.where(good, offset >> self._shift, 0)]
            good &= kinds >= 0
        sizes = np.array([*self._bytes, 8], np.uint64)[kinds]
        rounds = (behind % sizes).astype(np.int64) // 8 - self._first_place
        return np.where(good, np.maximum(rounds, 0), 0)

    def find(self, word: int, place: str, home: int) -> Magazine | None:
        """None: the word names none, rightly or not."""
        if word < self.smallest:
            return None
        behind = (self._origin + word) % (1 << 64)
        kind = self.kind_at(behind - 8)
        if kind is None:
            return None
        address = behind // self._bytes[kind] * self._bytes[kind]
        count = (behind - address) // 8 - self._first_place
        return Magazine(address, kind, count, place, home) if count >= 0 else None


class Magazines:
    """All magazines that are in a slot's word or in a depot."""

    def __init__(self, layout: Layout, memory: Memory, classes: Classes) -> None:
        self.layout = layout
        self.memory = memory
        self.classes = classes
        self.words = Words2Magazines(layout, memory, classes)
        self.nameless: list[str] = []  # words that name no magazine
        self.in_slots = list(self._of_slots())
        self.in_depots = list(self._of_depots())

    def __iter__(self) -> Iterator[Magazine]:
        return itertools.chain(self.in_slots, self.in_depots)

    def _of_slots(self) -> Iterator[Magazine]:
        layout = self.layout
        found = slots(layout, self.memory)
        homes = layout.constant("home.count")
        for slot in found:
            for field, what in (("slot.words", "loaded"), ("slot.previous", "previous")):
                words = slot.field(layout, field)[:homes]
                yield from self._of_words(words, 0, f"{what} magazine of {slot.name}")
        objects = self.classes.objects
        for name, first, raw in object_words(layout, self.memory, objects, found):
            for field, what in (("words.words", "loaded"), ("words.previous", "previous")):
                f = layout.field(field)
                words = raw[f.offset : f.offset + f.size * f.count].view("<u8")
                place = f"{what} magazine of {name}"
                yield from self._of_words(words, objects.first + first, place)

    def _of_words(self, words: Words, first_home: int, place: str) -> Iterator[Magazine]:
        for i in np.flatnonzero(words).tolist():
            home = first_home + i
            found = self.words.find(int(words[i]), place, home)
            if found is not None:
                yield found
            elif int(words[i]) >= self.words.smallest:
                self.nameless.append(f"{place}, home class {home}")

    def _of_depots(self) -> Iterator[Magazine]:
        shift = self.layout.constant("magazine.address_shift")
        kind_shift = self.layout.constant("magazine.kind_shift")
        homes = self.layout.constant("home.count")
        for table, stacks in shards(self.layout, self.memory, self.classes.objects):
            counts = stacks.field(self.layout, "stack.count")
            held = stacks.field(self.layout, "stack.magazines")
            for key in np.flatnonzero(counts).tolist():
                home = table.first_home + key
                for bits in held[key, : int(counts[key])].tolist():
                    kind = bits >> kind_shift & 0xFF
                    yield Magazine(
                        bits >> shift, kind, bits & 0xFF, f"depot of {stacks.name}",
                        home if table.first_home or key < homes else None,
                    )  # fmt: skip

    def places(self, magazine: Magazine, count: int) -> Words:
        """The first `count` places for rounds."""
        first = self.layout.constant("magazine.first_place")
        try:
            words: Words = self.memory.array(magazine.address + 8 * first, count, "<u8")
        except UnreadableError:
            return np.zeros(0, np.uint64)
        return words

    def rounds(self, magazine: Magazine) -> Words:
        """The blocks that it holds."""
        return self.places(magazine, magazine.count)


def take_out(heap: Heap, magazines: Magazines) -> None:
    """What magazines hold is free, and so is what the library keeps in blocks of its own."""
    held = [magazines.rounds(m) for m in magazines if m.count]
    if held:
        numbers = heap.numbers_at(np.concatenate(held))
        heap.allocated[numbers[numbers >= 0]] = False
    heap.allocated &= ~heap.of_library


def guarded_in_hands(layout: Layout, magazines: Magazines, areas: list[Range]) -> Words:
    """As in_hands(), of the hardened library, whose magazines lie in areas of their own."""
    size = magazines.words.bytes_of(magazines.words.guarded_kind)
    known = {m.address for m in magazines}
    at = layout.of_heap(magazines.memory, "magazines.guarded")
    while at != 0 and at not in known:  # a list of those that nobody has
        known.add(at)
        at = magazines.memory.number(at)
    found = [np.zeros(0, np.uint64)]
    for start, end in areas:
        for address in sorted(set(range(start, end, size)) - known):
            magazine = Magazine(address, magazines.words.guarded_kind, 0, "", None)
            found.append(magazines.places(magazine, magazines.words.capacity(magazine.kind)))
    return np.concatenate(found)


def in_hands(heap: Heap, magazines: Magazines) -> Words:
    """What lies in magazines that are in no word and no depot: a thread was moving them."""
    own = np.flatnonzero(heap.of_magazines & heap.allocated)
    if len(own) == 0:
        return np.zeros(0, np.uint64)
    known = heap.numbers_at(np.array([m.address for m in magazines], np.uint64))
    found = []
    for address in heap.addresses(np.setdiff1d(own, known)).tolist():
        kind = magazines.words.kind_at(address)
        if kind is not None:
            magazine = Magazine(address, kind, 0, "", None)
            found.append(magazines.places(magazine, magazines.words.capacity(kind)))
    return np.concatenate(found) if found else np.zeros(0, np.uint64)
