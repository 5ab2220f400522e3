# SPDX-License-Identifier: MIT OR Apache-2.0
"""Leaked objects by who allocated them, where caches have audit records."""

from dataclasses import dataclass

import numpy as np

from terrace.debug.heap import Heap
from terrace.debug.layout import Ints
from terrace.debug.symbols import Frames
from terrace.debug.umem.debugged import Debugged
from terrace.debug.umem.records import Record
from terrace.messages import count
from terrace.report.text import table

Key = tuple[str, tuple[int, ...]]


@dataclass
class AuditedGroup:
    """Of one cache, allocated by one stack; the oldest record stands for all."""

    cache: str
    leaked: int
    bytes: int
    oldest: Record


def audited_groups(heap: Heap, debugged: Debugged, leaked: Ints) -> list[AuditedGroup]:
    """Those that most objects are in first."""
    groups: dict[Key, AuditedGroup] = {}
    homes = heap.classes_of(leaked)
    for cache in debugged.caches:
        if not debugged.has_audit(cache):
            continue
        numbers = leaked[homes == cache.home]
        objects = zip(heap.addresses(numbers).tolist(), heap.sizes(numbers).tolist(), strict=True)
        for address, size in objects:
            record = debugged.reader.of_object(address, cache)
            if record is None:
                continue
            group = groups.setdefault(
                (cache.name, record.stack), AuditedGroup(cache.name, 0, 0, record)
            )
            group.leaked += 1
            group.bytes += size
            if record.nanoseconds < group.oldest.nanoseconds:
                group.oldest = record
    return sorted(groups.values(), key=lambda g: (-g.leaked, g.oldest.nanoseconds))


def audited_lines(groups: list[AuditedGroup], frames: Frames, most: int | None) -> list[str]:
    """The table, then who allocated what."""
    shown = groups[:most]

    def caller(record: Record) -> str:
        return frames.name(record.stack[0]) if record.stack else "?"

    rows = [[g.cache, f"{g.leaked:,}", f"{g.oldest.address:x}", caller(g.oldest)] for g in shown]
    leaked, size = (int(np.sum([getattr(g, n) for g in groups])) for n in ("leaked", "bytes"))
    rows.append(["Total", f"{leaked:,}", "", f"{count(leaked, 'buffer')}, {size:,} bytes"])
    result = table("CACHE  >LEAKED  BUFCTL  CALLER", rows)
    for group in shown:
        result += ["", f"{group.cache}: {count(group.leaked, 'buffer')}, the oldest allocated by"]
        result += [f"    {frames.name(address)}" for address in group.oldest.stack]
    return result
