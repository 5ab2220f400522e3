# SPDX-License-Identifier: MIT OR Apache-2.0
"""umem_malloc_info and umem_malloc_dist: what malloc's blocks are, by what was asked for.

Blocks of malloc's size classes have no header: of each only its class is known. Under UMEM_DEBUG
malloc is on the default caches, and a tag before each block says what was asked for.
"""

from dataclasses import dataclass

import numpy as np

from terrace.debug.layout import Ints, ints
from terrace.debug.umem.context import Context, split
from terrace.debug.umem.debugged import bytes_of
from terrace.debug.umem.usage import caches
from terrace.debug.usage import UsageReader
from terrace.report.text import table

_INFO = "CACHE  >BUFSZ  >MAXMAL  >BUFMALLC  >AVG_MAL  >MALLOCED  >OVERHEAD  >%OVER"
_WIDTH = 40  # of the histogram's longest bar


@dataclass(frozen=True)
class Info:
    """`asked`: by block, what malloc was asked for; None where nobody knows."""

    name: str
    size: int
    largest: int  # what it may be asked for
    blocks: int
    memory: int
    asked: Ints | None


def _asked(context: Context, home: int, size: int) -> Ints:
    """Of those that have malloc's tag: blocks of umem_alloc() have none."""
    umem, moment = context.umem, context.moment
    numbers = moment.heap.blocks_of(home)
    numbers = numbers[moment.allocated[numbers]]
    bytes_of_tag = umem.field("malloc_tag").size
    tags = 2 * bytes_of_tag  # the second one says what the block is
    if size < tags:
        return np.zeros(0, np.int64)
    raw = bytes_of(moment.heap, moment.memory, numbers, bytes_of_tag, bytes_of_tag)
    rows = raw.view(umem.row("malloc_tag"))[:, 0]
    total = ints(rows, "size")
    sum_of_both = (total + ints(rows, "stat")) & 0xFFFFFFFF
    good = (sum_of_both == umem.constant("malloc_magic.long")) & (total <= size)
    asked: Ints = total[good] - tags
    return asked


def _infos(context: Context) -> list[Info]:
    layout, umem = context.target.layout, context.umem
    found = [
        Info(u.owner.name, u.owner.size, u.owner.size, u.in_use, u.memory, None)
        for u in UsageReader(layout, context.memory).read().classes
    ]
    for usage in caches(layout, umem, context.memory):
        cache = usage.cache
        if cache.address not in context.default_caches or not usage.in_use:
            continue
        homes = [c.home for c in context.moment.debugged.with_homes([cache])]
        asked = np.concatenate([_asked(context, home, cache.size) for home in homes])
        largest = max(cache.size - 2 * umem.field("malloc_tag").size, 0)
        info = Info(cache.name, cache.size, largest, len(asked), usage.memory, asked)
        if len(asked):
            found.append(info)
    return found


def umem_malloc_info(context: Context, words: list[str]) -> list[str]:
    split(words, "", "", 0, "umem_malloc_info")
    rows, unknown = [], False
    for i in _infos(context):
        known = i.asked is not None
        unknown |= not known
        malloced = int(i.asked.sum()) if i.asked is not None else i.blocks * i.size
        average = str(malloced // i.blocks) if known and i.blocks else "-"
        overhead = max(i.memory - malloced, 0)
        percent = f"{100 * overhead / malloced:.1f}%" if malloced else "-"
        cells = (i.size, i.largest, i.blocks, average, malloced, overhead, percent)
        rows.append([i.name, *(str(c) for c in cells)])
    lines = table(_INFO, rows)
    if unknown:
        lines.append("of size classes, MALLOCED is what the blocks have room for")
    return lines


def umem_malloc_dist(context: Context, words: list[str]) -> list[str]:
    split(words, "", "", 0, "umem_malloc_dist")
    counts: dict[int, int] = {}  # by the largest size of a range: the sizes of classes
    infos = _infos(context)
    for i in infos:
        if i.blocks:
            counts[i.largest] = counts.get(i.largest, 0) + i.blocks
    most = max(counts.values(), default=0)
    rows, before = [], 0
    for largest in sorted({*counts, *(i.largest for i in infos)}):
        number = counts.get(largest, 0)
        if number:
            bar = "@" * -(-number * _WIDTH // most)
            rows.append([f"{before + 1} to {largest}", f"|{bar:<{_WIDTH}}|", str(number)])
        before = largest
    return table((">malloc size", "", ">count"), rows)
