# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the commands on object caches look at, and the words that they are called with."""

import getopt
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from terrace.debug.heap import Bools, Heap
from terrace.debug.layout import UmemLayout
from terrace.debug.magazines import Magazines
from terrace.debug.memory import Memory
from terrace.debug.roots import readable_data
from terrace.debug.symbols import Frames
from terrace.debug.target import Capture, Target
from terrace.debug.umem.caches import Cache, CacheReader
from terrace.debug.umem.debugged import Debugged
from terrace.errors import TerraceError


class Moment:
    """All blocks as they were in one moment: `allocated` are the program's."""

    def __init__(self, target: Target, umem: UmemLayout) -> None:
        self.capture: Capture = target.capture(readable_data)
        self.memory: Memory = self.capture.memory
        self.heap = Heap(target.layout, self.memory, umem)
        self.heap.add_apart(umem)
        self.magazines = Magazines(target.layout, self.memory, self.heap.classes)
        self.debugged = Debugged(self.heap, umem, self.memory)
        self.in_magazines: Bools = np.zeros(self.heap.total, np.bool_)
        for magazine in self.magazines:
            if magazine.count:
                numbers = self.heap.numbers_at(self.magazines.rounds(magazine))
                self.in_magazines[numbers[numbers >= 0]] = True
        self.in_magazines |= self.heap.large_objects & ~self.heap.allocated
        self.allocated: Bools = self.heap.allocated & ~self.in_magazines & ~self.heap.of_library


@dataclass
class Context:
    """A target whose chosen heap has object caches. `evaluate` turns a word into a number."""

    target: Target
    evaluate: Callable[[str], int]
    status: int = 0  # to exit with: 1 when a command has found a fault

    @cached_property
    def umem(self) -> UmemLayout:
        for i, heap in enumerate(self.target.heaps):
            if heap.umem is not None:
                self.target.chosen = i
                return heap.umem
        raise TerraceError(
            f"{self.target.title} has no libumem in it: there are no object caches to look at"
        )

    @property
    def memory(self) -> Memory:
        """As the process runs."""
        return self.target.memory

    @cached_property
    def moment(self) -> Moment:
        return Moment(self.target, self.umem)

    @cached_property
    def frames(self) -> Frames:
        return Frames(self.target.mappings())

    @cached_property
    def caches(self) -> list[Cache]:
        return list(CacheReader(self.umem, self.memory))

    @cached_property
    def default_caches(self) -> set[int]:
        return CacheReader(self.umem, self.memory).default_caches()

    def cache(self, word: str) -> Cache:
        """By its name, or by its address."""
        for cache in self.caches:
            if cache.name == word:
                return cache
        try:
            address = self.evaluate(word)
        except TerraceError:
            address = 0
        for cache in self.caches:
            if cache.address == address:
                return cache
        raise TerraceError(f"{word} is no object cache, neither a name nor an address")


@dataclass(frozen=True)
class Words:
    """What a command was called with: options without values, with values, and the rest."""

    flags: frozenset[str]
    values: dict[str, str]
    rest: list[str]


def split(words: list[str], flags: str, valued: str, most: int, usage: str) -> Words:
    """`flags` and `valued` are letters of options without and with a value."""
    try:
        options, rest = getopt.gnu_getopt(words, flags + "".join(f"{c}:" for c in valued))
    except getopt.GetoptError:
        options, rest = [], [""] * (most + 1)
    if len(rest) > most:
        raise TerraceError(f"usage: {usage}", 2)
    values = {option[1:]: value for option, value in options}
    return Words(frozenset(values) & frozenset(flags), values, rest)
