# SPDX-License-Identifier: MIT OR Apache-2.0
"""What each object cache has, by the counters: read as the process runs. See ../usage.py."""

from __future__ import annotations

import mmap
from dataclasses import dataclass

import numpy as np

from terrace.debug.classes import Classes, Ints
from terrace.debug.layout import Layout, UmemLayout
from terrace.debug.magazines import Words2Magazines, object_words, shards, slots
from terrace.debug.memory import Memory
from terrace.debug.objects import column
from terrace.debug.umem.caches import Cache, CacheReader


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
        self.in_slots, self.in_depots, self.popped = (
            np.zeros(objects.count, np.int64) for _ in range(3)
        )
        self._add_slots(layout, memory)
        self._add_depots(layout, memory)
        slabs = objects.slab_counters(layout, memory)
        self.made = np.maximum(slabs["made"] - slabs["released"], 0)
        self.out = np.maximum(slabs["cut"] - slabs["returned"], 0)

    def _add_slots(self, layout: Layout, memory: Memory) -> None:
        objects = self.classes.objects
        words = Words2Magazines(layout, memory, self.classes)
        found = object_words(layout, memory, objects, slots(layout, memory))
        if not found:
            return
        raw = np.stack([row for _, _, row in found])
        held = words.counts(column(raw, layout, "words.words"))
        held = held + words.counts(column(raw, layout, "words.previous"))
        popped = column(raw, layout, "words.popped").astype(np.int64)
        for i, (_, first, _) in enumerate(found):
            part = slice(first, first + objects.per_chunk)
            self.in_slots[part] += held[i]
            self.popped[part] += popped[i]

    def _add_depots(self, layout: Layout, memory: Memory) -> None:
        objects = self.classes.objects
        for table, stacks in shards(layout, memory, objects):
            if table.first_home:
                came = stacks.field(layout, "stack.blocks_in").astype(np.int64)
                went = stacks.field(layout, "stack.blocks_out").astype(np.int64)
                first = table.first_home - objects.first
                self.in_depots[first : first + table.keys] += np.maximum(came - went, 0)


def caches(layout: Layout, umem: UmemLayout, memory: Memory) -> list[CacheUsage]:
    """Of each cache, in the order in which they were created."""
    counters = _Counters(layout, memory)
    objects = counters.classes.objects
    granule = 1 << layout.constant("granule.shift")
    held = counters.in_slots + counters.in_depots
    numbers: list[Ints] = [
        np.maximum(counters.out - held, 0), counters.in_slots, counters.in_depots,
        objects.shapes["blocks"] * counters.made,
        objects.shapes["granules"] * granule * counters.made,
        counters.popped + objects.columns["refills"] - objects.columns["failed"]
        + objects.columns["handed_out"],
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
