# SPDX-License-Identifier: MIT OR Apache-2.0
"""Object caches, as umem_cache_create() has made them."""

from collections.abc import Iterator
from dataclasses import dataclass

from terrace.debug.layout import Row, UmemLayout, filled, text
from terrace.debug.memory import Memory, UnreadableError

_LOOKING = ("audit", "deadbeef", "redzone", "firewall")
MOST = 1 << 17  # caches; of more, a list is damaged


@dataclass(frozen=True)
class Cache:
    """`home` is the class of its objects, or of handles of those that are free; 0: of neither.

    Objects without a class are large blocks, or pieces of the arena `source`.
    """

    address: int
    name: str
    size: int
    align: int
    flags: int
    debug: int
    verify: int  # bytes of a free object that have a pattern
    home: int
    has_class: bool
    has_handles: bool
    source: int
    allocated: int  # of those without a class, as the next ones
    freed: int
    failed: int  # allocations, of all


def both_halves(number: int) -> int:
    """Patterns and states are described by one half, which is the other one, too."""
    return number << 32 | number


def tag_offset(cache: Cache) -> int:
    """Of what UMEM_DEBUG keeps behind an object: in whole words."""
    return -(-cache.size // 8) * 8


def debugs_objects(umem: UmemLayout) -> int:
    """Of `debug`: any of these, and each object has a tag and a record."""
    return sum(umem.constant(f"debug.{name}") for name in _LOOKING)


def _cache(address: int, row: Row) -> Cache:
    return filled(Cache, row, address=address, name=text(row["name"]))


class CacheReader:
    """Reads one, or all of the list."""

    def __init__(self, umem: UmemLayout, memory: Memory) -> None:
        self._umem = umem
        self._memory = memory

    def at(self, address: int) -> Cache | None:
        """None: nothing can be read there."""
        try:
            return _cache(address, self._umem.read(self._memory, "cache", address))
        except UnreadableError:
            return None

    def __iter__(self) -> Iterator[Cache]:
        """In the order in which they were created; as far as the list can be followed."""
        umem = self._umem
        first = umem.value(self._memory, umem.address("caches"), "caches.first")
        for at, row in umem.linked(self._memory, "cache", first, "next", MOST):
            yield _cache(at, row)

    def default_caches(self) -> set[int]:
        """Addresses of those that serve umem_alloc() under UMEM_DEBUG or with UMEM_OPTIONS."""
        umem = self._umem
        table = self._memory.number(umem.address("default_caches"))
        if table == 0:
            return set()
        entries = umem.constant("default.largest") // umem.constant("default.step")
        return set(self._memory.array(table, entries, "<u8").tolist()) - {0}


class LargeObjects:
    """Objects that are large blocks: those of caches that UMEM_DEBUG looks at have tags."""

    def __init__(self, umem: UmemLayout, memory: Memory) -> None:
        self._umem, self._memory = umem, memory
        looked_at = debugs_objects(umem)
        reader = CacheReader(umem, memory)
        self.caches = [c for c in reader if not (c.has_class or c.source) and c.debug & looked_at]
        self._sizes = {tag_offset(c) + umem.field("tag").size for c in self.caches}

    def cache_of(self, address: int, size: int) -> Cache | None:
        """Whose object a block of that many bytes is: its tag leads to a record that says so."""
        umem = self._umem
        if size not in self._sizes:
            return None
        tag = address + size - umem.field("tag").size
        try:
            at = umem.read(self._memory, "tag", tag)["record"]
            record = umem.read(self._memory, "record", at)
        except UnreadableError:
            return None
        if record["object"] != address:
            return None
        return next((c for c in self.caches if c.address == record["cache"]), None)
