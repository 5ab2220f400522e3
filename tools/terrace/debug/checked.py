# SPDX-License-Identifier: MIT OR Apache-2.0
"""TERRACE_CHECK: the registry tells which blocks the program has; the others wait or are zones."""

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
    entries, freed = [], []
    for head in heads[heads != 0].tolist():
        for entry, row in layout.linked(memory, "checked", head, "next"):
            entries.append(entry)
            if row["state"] != layout.constant("checked.live"):
                freed.append(row["start"])
    numbers = heap.numbers_at(np.array(freed, np.uint64))
    heap.allocated[numbers[numbers >= 0]] = False
    waiting = layout.of_heap(memory, "check.waiting")
    return holding(capture.mappings, [buckets, waiting, *entries])
