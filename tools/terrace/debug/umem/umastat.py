# SPDX-License-Identifier: MIT OR Apache-2.0
"""The tables of umastat for object caches and for arenas."""

from terrace.debug.layout import UmemLayout
from terrace.debug.memory import Memory
from terrace.debug.umem.arenas import ArenaReader, tree
from terrace.debug.umem.usage import CacheUsage
from terrace.report.cells import human_bytes
from terrace.report.text import table

_CACHES = (
    "cache name  >buf size  >buf in use  >buf in slots  >buf in depots  >buf total  >memory in use"
    "  >alloc succeed  >alloc fail"
)
_ARENAS = (
    "vmem arena name  >memory in use  >memory total  >memory import  >alloc succeed  >alloc fail"
)


def cache_lines(usages: list[CacheUsage]) -> list[str]:
    """And their sums."""
    if not usages:
        return []
    names = [(u.cache.name, f"{u.cache.size:,}") for u in usages] + [("Total", "")]
    numbers: list[tuple[int, ...]] = [
        (u.in_use, u.in_slots, u.in_depots, u.total, u.memory, u.succeeded, u.failed)
        for u in usages
    ]
    numbers.append(tuple(map(sum, zip(*numbers, strict=True))))
    rows = [
        [*name, *(f"{n:,}" for n in counts), human_bytes(memory), f"{calls:,}", f"{failed:,}"]
        for name, (*counts, memory, calls, failed) in zip(names, numbers, strict=True)
    ]
    return table(_CACHES, rows)


def arena_lines(umem: UmemLayout, memory: Memory) -> list[str]:
    """Each is indented by its source."""
    rows = [
        [
            "  " * depth + a.name, human_bytes(a.in_use), human_bytes(a.total),
            human_bytes(a.imported), f"{a.allocations:,}", f"{a.failures:,}",
        ]
        for depth, a in tree(list(ArenaReader(umem, memory)))
    ]  # fmt: skip
    return table(_ARENAS, rows) if rows else []
