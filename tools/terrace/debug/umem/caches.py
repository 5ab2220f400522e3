# SPDX-License-Identifier: MIT OR Apache-2.0
"""Object caches, as umem_cache_create() has made them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from terrace.debug.layout import UmemLayout
from terrace.debug.memory import Memory, UnreadableError

MOST = 1 << 17  # caches; of more, a list is damaged


@dataclass(frozen=True)
class Cache:
    """`home` is its class's; 0: its objects are large blocks, or pieces of the arena `source`."""

    address: int
    name: str
    size: int
    align: int
    flags: int
    debug: int
    verify: int  # bytes of a free object that have a pattern
    home: int
    source: int
    allocated: int  # of those without a class, as the next ones
    freed: int
    failed: int  # allocations, of all


class CacheReader:
    """Reads one, or all of the list."""

    def __init__(self, umem: UmemLayout, memory: Memory) -> None:
        self._umem = umem
        self._memory = memory
        self._size = umem.field("cache").size

    def at(self, address: int) -> Cache | None:
        """None: nothing can be read there."""
        found = self._read(address)
        return None if found is None else found[0]

    def _read(self, address: int) -> tuple[Cache, int] | None:
        umem = self._umem
        try:
            raw = self._memory.read(address, self._size)
        except UnreadableError:
            return None
        names = ("size", "align", "flags", "debug", "verify", "home", "source", "allocated")
        fields = {name: umem.within(raw, f"cache.{name}") for name in (*names, "freed", "failed")}
        cache = Cache(address, umem.text(raw, "cache.name"), **fields)
        return cache, umem.within(raw, "cache.next")

    def __iter__(self) -> Iterator[Cache]:
        """In the order in which they were created; as far as the list can be followed."""
        at = self._umem.value(self._memory, self._umem.address("caches"), "caches.first")
        seen: set[int] = set()
        while at != 0 and at not in seen and len(seen) < MOST:
            seen.add(at)
            found = self._read(at)
            if found is None:
                return
            cache, at = found
            yield cache

    def default_caches(self) -> set[int]:
        """Addresses of those that serve umem_alloc() under UMEM_DEBUG or with UMEM_OPTIONS."""
        umem = self._umem
        table = self._memory.number(umem.address("default_caches"))
        if table == 0:
            return set()
        entries = umem.constant("default.largest") // umem.constant("default.step")
        return set(self._memory.array(table, entries, "<u8").tolist()) - {0}
