# SPDX-License-Identifier: MIT OR Apache-2.0
"""Leaked blocks that were sampled: who has allocated them."""

import numpy as np

from terrace.debug.heap import Heap
from terrace.debug.layout import Ints, Layout
from terrace.debug.memory import Memory
from terrace.debug.sampled.frames import Stack, lines_of
from terrace.debug.sampled.stacks import Stacks
from terrace.debug.sampled.table import Sample, Table
from terrace.debug.target import Target
from terrace.messages import count
from terrace.report.cells import human_bytes


def table_of(layout: Layout, memory: Memory) -> Table | None:
    """None: the library is older than its profiler, or nothing was sampled."""
    table = Table(layout, memory) if layout.describes("profile") else None
    return table if table is not None and table.taken else None


def leaked_samples(heap: Heap, table: Table | None, leaked: Ints) -> list[Sample]:
    """Of the leaked blocks, by their numbers."""
    if table is None:
        return []
    live = [sample for sample in table.samples() if sample.is_live]
    addresses = np.array([sample.address for sample in live], np.uint64)
    are_leaked = np.isin(heap.numbers_at(addresses), leaked).tolist()
    found = zip(live, are_leaked, strict=True)
    return [table.newest(sample) for sample, is_leaked in found if is_leaked]


def sampled_lines(target: Target, samples: list[Sample], most: int | None) -> list[str]:
    """Stacks with what they stand for, the most bytes first."""
    sums: dict[Stack, list[float]] = {}
    for sample, stack in Stacks(target).named(samples):
        each = sums.setdefault(stack, [0, 0])
        each[0] += sample.weight
        each[1] += sample.weight * sample.size
    ordered = sorted(sums.items(), key=lambda item: -item[1][1])[:most]
    samples_said = count(len(samples), "leaked block was", "leaked blocks were")
    result = ["", f"{samples_said} sampled, and stand for about"]
    for stack, (blocks, size) in ordered:
        result.append(f"  {human_bytes(round(size))} in {count(round(blocks), 'block')}, by")
        result += [f"    {line.function}  {line.place}".rstrip() for line in lines_of(stack)]
    return [*result, ""]
