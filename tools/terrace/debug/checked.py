# SPDX-License-Identifier: MIT OR Apache-2.0
"""TERRACE_CHECK: the registry tells which blocks the program has; the others wait or are zones."""

from __future__ import annotations

import numpy as np

from terrace.debug.heap import Heap
from terrace.debug.roots import holding
from terrace.debug.target import Capture, Range


def apply(heap: Heap, capture: Capture) -> list[Range]:
    """Takes out what was freed and waits; the checker's own memory, which is no root."""
    layout, memory = heap.layout, capture.memory
    if not layout.of_heap(memory, "check.on"):
        return []
    buckets = layout.of_heap(memory, "check.buckets")
    heads = memory.sparse(buckets, layout.constant("check.bucket_count") * 8).view(np.uint64)
    size = layout.field("checked").size
    next_at, start_at = layout.offset("checked.next"), layout.offset("checked.start")
    state_at, live = layout.offset("checked.state"), layout.constant("checked.live")
    entries, freed = [], []
    for entry in heads[heads != 0].tolist():
        while entry != 0:
            raw = memory.read(entry, size)
            entries.append(entry)
            if raw[state_at] != live:
                freed.append(int.from_bytes(raw[start_at : start_at + 8], "little"))
            entry = int.from_bytes(raw[next_at : next_at + 8], "little")
    numbers = heap.numbers_at(np.array(freed, np.uint64))
    heap.allocated[numbers[numbers >= 0]] = False
    waiting = layout.of_heap(memory, "check.waiting")
    return holding(capture.mappings, [buckets, waiting, *entries])
