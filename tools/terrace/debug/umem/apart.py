# SPDX-License-Identifier: MIT OR Apache-2.0
"""Objects that UMEM_DEBUG looks at and that are no blocks of the heap.

Pieces of a cache's arena have a tag behind them, as blocks have; objects under `firewall` have a
description that a table by page leads to: src/umem/firewall.h.
"""

import mmap
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from terrace.debug.layout import UmemLayout
from terrace.debug.memory import Memory, UnreadableError
from terrace.debug.target import Range
from terrace.debug.umem.arenas import Arena, ArenaReader
from terrace.debug.umem.caches import (
    Cache,
    CacheReader,
    both_halves,
    debugs_objects,
    tag_offset,
)


@dataclass(frozen=True)
class ApartObject:
    """`cache` is an address; 0: it is larger than any cache's. `record`: of walled ones."""

    address: int
    size: int
    cache: int
    is_free: bool
    record: int = 0


@dataclass
class Apart:
    """In order of addresses; and what names them without being the program's."""

    objects: list[ApartObject] = field(default_factory=list)
    caches: dict[int, Cache] = field(default_factory=dict)  # of the objects, by address
    own: list[Range] = field(default_factory=list)
    descriptions: list[int] = field(default_factory=list)  # of walled ones, in use or not: blocks


class ApartReader:
    """Reads all there are."""

    def __init__(self, umem: UmemLayout, memory: Memory) -> None:
        self._umem, self._memory = umem, memory
        self._arenas = ArenaReader(umem, memory)

    def read(self, window: Range) -> Apart:
        """Without what lies in the window: there a block has it."""
        found = Apart()
        arenas = {a.address: a for a in self._arenas}
        self._add_walled(found, arenas)
        self._add_pieces(found, arenas)
        found.objects = sorted(
            (o for o in found.objects if not window[0] <= o.address < window[1]),
            key=lambda o: o.address,
        )
        return found

    def _own(self, arena: Arena) -> Iterator[Range]:
        size = self._umem.field("segment").size
        yield arena.address, arena.address + self._umem.field("arena").size
        yield from ((s.address, s.address + size) for s in self._arenas.segments(arena))

    def _add_walled(self, found: Apart, arenas: dict[int, Arena]) -> None:
        umem, memory = self._umem, self._memory
        walls, zones = umem.address("walls"), umem.field("walls.zones")
        size = umem.field("zone").size
        caches = {c.address: c for c in CacheReader(umem, memory)} | {0: self._oversize()}
        count = min(umem.value(memory, walls, "walls.count"), zones.size * zones.count // size)
        for i in range(count):
            zone = umem.read(memory, "zone", walls + zones.offset + i * size)
            base, length, by_page = zone["base"], zone["bytes"], zone["by_page"]
            owners = memory.sparse(by_page, length // mmap.PAGESIZE * 8)
            found.own += [(base, base + length), (by_page, by_page + owners.nbytes)]
            if zone["addresses"] in arenas:
                found.own += self._own(arenas[zone["addresses"]])
            descriptions = np.unique(owners.view("<u8")).tolist()
            found.descriptions += descriptions
            for owner in descriptions:
                walled = self._walled(owner) if owner else None
                if walled is not None and walled.cache in caches:
                    found.objects.append(walled)
                    found.caches[walled.cache] = caches[walled.cache]

    def _oversize(self) -> Cache:
        """Stands for what is larger than any cache's."""
        umem = self._umem
        debug = umem.value(self._memory, umem.address("options"), "options.debug")
        return Cache(0, "umem_oversize", 0, 0, 0, debug, 0, 0, False, False, 0, 0, 0, 0)

    def _walled(self, address: int) -> ApartObject | None:
        """None: it is free, or can not be read."""
        umem = self._umem
        record = address + umem.constant("walled.record")
        try:
            walled = umem.read(self._memory, "walled", address)
            said = umem.read(self._memory, "record", record)
        except UnreadableError:
            return None
        if not walled["in_use"]:
            return None
        return ApartObject(said["object"], walled["size"], said["cache"], False, record)

    def _add_pieces(self, found: Apart, arenas: dict[int, Arena]) -> None:
        looked_at = debugs_objects(self._umem)
        by_arena: dict[int, list[Cache]] = {}
        for cache in CacheReader(self._umem, self._memory):
            if cache.source in arenas and not cache.has_class and cache.debug & looked_at:
                by_arena.setdefault(cache.source, []).append(cache)
        for source, caches in by_arena.items():
            found.own += self._own(arenas[source])
            for s in self._arenas.segments(arenas[source]):
                piece = self._piece(s.start, s.asked, caches) if s.kind == "allocated" else None
                if piece is not None:
                    found.objects.append(piece)
            found.caches |= {c.address: c for c in caches}

    def _piece(self, address: int, asked: int, caches: list[Cache]) -> ApartObject | None:
        """Whose it is, its tag says; if it says nothing that makes sense, the length does."""
        umem, size_of_tag = self._umem, self._umem.field("tag").size
        fitting = [c for c in caches if tag_offset(c) + size_of_tag == asked]
        if not fitting:
            return None
        at = address + asked - size_of_tag
        try:
            tag = umem.read(self._memory, "tag", at)
            record = tag["record"]
            owner = umem.read(self._memory, "record", record)["cache"]
        except UnreadableError:
            owner = record = 0
        cache = next((c for c in fitting if c.address == owner), fitting[0])
        state = tag["state"] ^ record if record else 0
        is_free = state == both_halves(umem.constant("state.free"))
        return ApartObject(address, cache.size, cache.address, is_free)
