# SPDX-License-Identifier: MIT OR Apache-2.0
"""Magazines: free blocks that slots and depots hold. src/level/magazine.h has how they look."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from terrace.debug.classes import Classes
from terrace.debug.heap import Heap
from terrace.debug.layout import Ints, Layout
from terrace.debug.memory import Memory, UnreadableError, Words
from terrace.debug.slots import shards, slots, words_of_objects
from terrace.debug.target import Range


@dataclass(frozen=True)
class Magazine:
    """`home` is the home class whose word or stack it was found in; None: an empty one."""

    address: int
    kind: int
    count: int
    place: str
    home: int | None


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
    def _kinds(self) -> Ints:
        """By granule; -1: no magazines."""
        homes = self._memory.sparse(self._map, self._extent >> self._shift).astype(np.int64)
        kinds = homes - self._classes.first_magazine
        return np.where((kinds >= 0) & (kinds < self._classes.kinds), kinds, -1)

    def counts(self, words: Words) -> Ints:
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

    def held(self, row: Any, count: int) -> Ints:
        """Blocks in both magazines of the first words of a slot, or of a chunk's words."""
        return self.counts(row["words"][:count]) + self.counts(row["previous"][:count])

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
        found = slots(self.layout, self.memory)
        objects = self.classes.objects
        homes = self.layout.constant("home.count")
        each = [(slot.name, 0, slot.row, homes) for slot in found] + [
            (slot.name, objects.first + first, row, objects.per_chunk)
            for slot, first, _, row in words_of_objects(self.layout, self.memory, objects, found)
        ]
        for name, first, row, count in each:
            for field, what in (("words", "loaded"), ("previous", "previous")):
                place = f"{what} magazine of {name}"
                yield from self._of_words(row[field][:count], first, place)

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
        for table, name, stacks in shards(self.layout, self.memory, self.classes.objects):
            for key in np.flatnonzero(stacks["count"]).tolist():
                home = table.first_home + key
                known = home if table.first_home or key < homes else None
                for bits in stacks["magazines"][key, : int(stacks["count"][key])].tolist():
                    kind = bits >> kind_shift & 0xFF
                    yield Magazine(bits >> shift, kind, bits & 0xFF, f"depot of {name}", known)

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
