# SPDX-License-Identifier: MIT OR Apache-2.0
"""What each object cache has, by the counters: read as the process runs. See ../usage.py."""

import mmap
from dataclasses import dataclass, replace

import numpy as np

from terrace.debug.classes import Classes, Owner
from terrace.debug.layout import Ints, Layout, UmemLayout, ints
from terrace.debug.magazines import Words2Magazines
from terrace.debug.memory import Memory
from terrace.debug.slots import shards, slots, words_of_objects
from terrace.debug.target import Target
from terrace.debug.umem.caches import Cache, CacheReader
from terrace.debug.usage import Snapshot, Usage


@dataclass(frozen=True)
class CacheUsage:
    """In objects, but for `memory`."""

    cache: Cache
    in_use: int
    in_slots: int
    in_depots: int
    total: int
    memory: int
    succeeded: int
    failed: int


class _Counters:
    """By the number of the class."""

    def __init__(self, layout: Layout, memory: Memory) -> None:
        self.classes = Classes(layout, memory)
        objects = self.classes.objects
        self.in_slots, self.in_depots = (np.zeros(objects.count, np.int64) for _ in range(2))
        # While the heap profiler runs, a slot's counts begin below 0.
        armed = "armed" in (objects.rows.dtype.names or ())
        self.popped = ints(objects.rows, "armed") if armed else np.zeros(objects.count, np.int64)
        self._add_slots(layout, memory)
        self._add_depots(layout, memory)
        slabs = objects.slabs()
        self.made = np.maximum(ints(slabs, "made") - ints(slabs, "released"), 0)
        self.out = np.maximum(ints(slabs, "cut") - ints(slabs, "returned"), 0)

    def _add_slots(self, layout: Layout, memory: Memory) -> None:
        objects = self.classes.objects
        words = Words2Magazines(layout, memory, self.classes)
        for _, first, _, row in words_of_objects(layout, memory, objects, slots(layout, memory)):
            part = slice(first, first + objects.per_chunk)
            self.in_slots[part] += words.held(row, objects.per_chunk)
            self.popped[part] += row["popped"].astype(np.int64)

    def _add_depots(self, layout: Layout, memory: Memory) -> None:
        objects = self.classes.objects
        for table, _, stacks in shards(layout, memory, objects):
            if table.first_home:
                held = np.maximum(ints(stacks, "blocks_in") - ints(stacks, "blocks_out"), 0)
                first = table.first_home - objects.first
                self.in_depots[first : first + table.keys] += held


def caches(layout: Layout, umem: UmemLayout, memory: Memory) -> list[CacheUsage]:
    """Of each cache, in the order in which they were created."""
    counters = _Counters(layout, memory)
    objects = counters.classes.objects
    granule = 1 << layout.constant("granule.shift")
    held = counters.in_slots + counters.in_depots
    numbers: list[Ints] = [
        np.maximum(counters.out - held, 0), counters.in_slots, counters.in_depots,
        ints(objects.shapes, "blocks") * counters.made,
        ints(objects.shapes, "granules") * granule * counters.made,
        counters.popped + ints(objects.rows, "refills") - ints(objects.rows, "failed")
        + ints(objects.rows, "handed_out"),
    ]  # fmt: skip
    rows = np.stack(numbers, axis=1).tolist()
    found = []
    for cache in CacheReader(umem, memory):
        number = cache.home - objects.first
        row = [0] * len(numbers)
        if 0 <= number < objects.count:
            row = rows[number]
        if not cache.has_class:
            # Of the class are handles, of objects that are free.
            kept = row[1] + row[2]
            row = [0, *row[1:3], kept, kept * cache.size, 0]
        in_use, in_slots, in_depots, total, size, succeeded = _with_counted(umem, cache, row)
        found.append(
            CacheUsage(
                cache, in_use, in_slots, in_depots, total, size, succeeded, cache.failed
            )
        )  # fmt: skip
    return found


def _with_counted(umem: UmemLayout, cache: Cache, row: list[int]) -> list[int]:
    """And the objects that are no blocks of the class, which the cache counts itself."""
    live = max(cache.allocated - cache.freed, 0)
    # Behind a firewall each has pages of its own, without the one that nobody may touch.
    walled = cache.has_class or cache.debug & umem.constant("debug.firewall")
    size = -(-cache.size // mmap.PAGESIZE) * mmap.PAGESIZE if walled else cache.size
    more = (live, 0, 0, live, live * size, cache.allocated)
    return [a + b for a, b in zip(row, more, strict=True)]


def with_caches(target: Target, snapshot: Snapshot) -> Snapshot:
    """Object caches stand beside size classes; those without a class have their address."""
    if target.umem is None:
        return snapshot
    found = [
        Usage(
            Owner(u.cache.name, u.cache.size, u.cache.home or -u.cache.address),
            u.in_use, u.in_slots, u.in_depots, u.total, 0, u.memory, u.succeeded, u.failed,
        )
        for u in caches(target.layout, target.umem, target.memory)
    ]  # fmt: skip
    return replace(snapshot, classes=snapshot.classes + found)
