# SPDX-License-Identifier: MIT OR Apache-2.0
"""All objects that UMEM_DEBUG looks at, a cache at a time: tags and records as arrays."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from terrace.debug.heap import Bools, Heap
from terrace.debug.layout import Ints, UmemLayout, ints
from terrace.debug.memory import Memory, Words
from terrace.debug.umem.caches import Cache, both_halves, debugs_objects, tag_offset
from terrace.debug.umem.records import Record, RecordReader


def bytes_of(
    heap: Heap, memory: Memory, numbers: Ints, offset: int, size: int
) -> npt.NDArray[np.uint8]:
    """A row for each block: so many bytes from an offset in it. Numbers rise."""
    result = np.zeros((len(numbers), size), np.uint8)
    spans = heap.span_of_number(numbers)
    addresses = heap.addresses(numbers)
    edges = np.flatnonzero(np.diff(spans, prepend=-1, append=-1))
    for first, last in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        low = int(addresses[first]) + offset
        high = int(addresses[last - 1]) + offset + size
        raw = memory.sparse(low, high - low)
        rows = (addresses[first:last] + offset - low)[:, None] + np.arange(size)
        result[first:last] = raw[rows]
    return result


@dataclass(frozen=True)
class Tagged:
    """The objects of a cache that have tags, in order of addresses; arrays of one length each."""

    cache: Cache
    numbers: Ints
    addresses: Ints
    redzone: Words
    record: Words
    state: Words
    is_allocated: Bools  # as the tag says
    is_free: Bools

    @property
    def is_damaged(self) -> Bools:
        return ~(self.is_allocated | self.is_free)


@dataclass(frozen=True)
class Records:
    """Of many objects: arrays of one length. Frames behind the depth are zero."""

    address: Words
    object: Words
    cache: Words
    nanoseconds: Words
    thread: Words
    stack: npt.NDArray[np.uint64]

    def at(self, i: int) -> Record:
        """One of them."""
        stack = [frame for frame in self.stack[i].tolist() if frame]
        fields = (self.address, self.object, self.cache, self.nanoseconds, self.thread)
        address, block, cache, when, thread = (int(f[i]) for f in fields)
        return Record(address, block, cache, when, thread, tuple(stack))


class Debugged:
    """All caches whose objects have tags. Before anything is taken out of `heap`."""

    def __init__(self, heap: Heap, umem: UmemLayout, memory: Memory) -> None:
        self.heap, self.umem, self.memory = heap, umem, memory
        self.out = heap.allocated | heap.large_objects  # of their slabs
        self.reader = RecordReader(umem, memory, heap)
        self._walled_caches = {o.cache for o in heap.apart.objects if o.record}
        wanted = debugs_objects(umem)
        known = len(heap.classes.shapes)
        self.caches = [
            c
            for c in self.with_homes([*self.reader.caches, *self._oversize()])
            if (c.debug & wanted or self.is_walled(c))
            and heap.classes.objects.first <= c.home < known
            and tag_offset(c) + umem.field("tag").size <= heap.tables[2][c.home]  # the stride
        ]

    def has_audit(self, cache: Cache) -> bool:
        return bool(cache.debug & self.umem.constant("debug.audit"))

    def _oversize(self) -> list[Cache]:
        return [c for c in self.heap.apart.caches.values() if c.address == 0]

    def with_homes(self, caches: Iterable[Cache]) -> Iterator[Cache]:
        """A cache for each home of its objects: blocks of its class, and those that are none."""
        apart = self.heap.classes.homes_apart
        for cache in caches:
            if cache.has_class:
                yield cache
            if cache.address in apart:
                yield replace(cache, home=apart[cache.address])

    def is_walled(self, cache: Cache) -> bool:
        """Its objects have no tags, and a page of their own each."""
        apart = self.heap.classes.homes_apart.get(cache.address)
        return cache.address in self._walled_caches and cache.home == apart

    def numbers_of(self, home: int) -> Ints:
        """All blocks of a class that are not in their slabs."""
        numbers = self.heap.blocks_of(home)
        out: Ints = numbers[self.out[numbers]]
        return out

    def tagged(self, cache: Cache) -> Tagged:
        umem = self.umem
        numbers = self.numbers_of(cache.home)
        if self.is_walled(cache):
            return self._walled(cache, numbers)
        size = umem.field("tag").size
        raw = bytes_of(self.heap, self.memory, numbers, tag_offset(cache), size)
        tags = raw.view(umem.row("tag"))[:, 0]
        redzone, record, state = (tags[name] for name in ("redzone", "record", "state"))
        said = record ^ state
        return Tagged(
            cache, numbers, self.heap.addresses(numbers), redzone, record, state,
            said == np.uint64(both_halves(umem.constant("state.allocated"))),
            said == np.uint64(both_halves(umem.constant("state.free"))),
        )  # fmt: skip

    def _walled(self, cache: Cache, numbers: Ints) -> Tagged:
        """As if they had tags."""
        umem = self.umem
        addresses = self.heap.addresses(numbers)
        found = [self.reader.walled[address] for address in addresses.tolist()]
        record = np.array(found, np.uint64)
        redzone = np.full(len(numbers), both_halves(umem.constant("pattern.redzone")), np.uint64)
        state = record ^ np.uint64(both_halves(umem.constant("state.allocated")))
        yes = np.ones(len(numbers), np.bool_)
        return Tagged(cache, numbers, addresses, redzone, record, state, yes, ~yes)

    def records(self, tagged: Tagged, rows: Ints) -> Records:
        """Of some of the objects; what is no record has no cache."""
        umem = self.umem
        addresses = tagged.record[rows]
        numbers = self.heap.numbers_at(addresses)
        good = np.flatnonzero(numbers >= 0)
        order = good[np.argsort(numbers[good], kind="stable")]
        frames = min(umem.value(self.memory, umem.address("options"), "options.frames"), 512)
        if not self.has_audit(tagged.cache):
            frames = 0
        head = umem.constant("record.stack")
        end, size = head + 8 * frames, umem.field("record").size
        raw = np.zeros((len(rows), max(end, size)), np.uint8)
        before = umem.constant("walled.record") if self.is_walled(tagged.cache) else 0
        raw[order] = bytes_of(self.heap, self.memory, numbers[order], before, raw.shape[1])
        said = np.ascontiguousarray(raw[:, :size]).view(umem.row("record"))[:, 0]
        stack = np.ascontiguousarray(raw[:, head:end]).view("<u8").reshape(len(rows), frames).copy()
        stack[np.arange(frames)[None, :] >= ints(said, "depth")[:, None]] = 0
        right = said["object"] == tagged.addresses[rows].astype(np.uint64)
        return Records(
            addresses, said["object"], np.where(right, said["cache"], 0), said["nanoseconds"],
            said["thread"], stack,
        )  # fmt: skip

    def record_numbers(self) -> Ints:
        """The blocks that records lie in: they are the library's, not the program's."""
        found = [self.heap.numbers_at(np.array(self.heap.apart.descriptions, np.uint64))]
        for cache in self.caches:
            tagged = self.tagged(cache)
            found.append(self.heap.numbers_at(tagged.record[~tagged.is_damaged]))
        numbers = np.unique(np.concatenate(found))
        return numbers[numbers >= 0]
