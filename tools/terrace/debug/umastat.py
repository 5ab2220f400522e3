# SPDX-License-Identifier: MIT OR Apache-2.0
"""`terrace umastat`: a line for each size class, a line for each level."""

from terrace.debug import slot_table
from terrace.debug.target import Target
from terrace.debug.umem.umastat import arena_lines, cache_lines
from terrace.debug.umem.usage import caches
from terrace.debug.usage import Snapshot, UsageReader
from terrace.report.cells import human_bytes
from terrace.report.text import table

_CLASSES = ">size  >in use  >in slots  >in depots  >total  >memory  >allocations  >failures"
_LEVELS = "level  >parts  >magazines  >free blocks  >free memory"


def _class_rows(snapshot: Snapshot) -> list[list[str]]:
    large = snapshot.large
    names = [u.owner.name for u in snapshot.classes] + ["large"]
    numbers: list[tuple[int, ...]] = [
        (u.in_use, u.in_slots, u.in_depots, u.total, u.memory, u.allocations, u.failures)
        for u in snapshot.classes
    ]
    together = (large.blocks + large.kept, large.bytes + large.kept_bytes, large.allocations)
    numbers.append((large.blocks, large.kept, 0, *together, 0))
    if snapshot.classes:
        names.append("total")
        numbers.append(tuple(map(sum, zip(*numbers, strict=True))))
    rows = [
        [name, *(f"{n:,}" for n in blocks), human_bytes(memory), f"{calls:,}", f"{failed:,}"]
        for name, (*blocks, memory, calls, failed) in zip(names, numbers, strict=True)
    ]
    rows[len(snapshot.classes)][-1] = "-"  # of large blocks they are not counted
    return rows


def level_rows(snapshot: Snapshot) -> list[list[str]]:
    rows = [
        [
            level.name, f"{level.parts:,} {level.what}",
            "-" if level.what == "slabs" else f"{level.magazines:,}",
            f"{level.blocks:,}", human_bytes(level.bytes),
        ]
        for level in snapshot.levels
    ]  # fmt: skip
    rows.append(["spans", "-", "-", "-", human_bytes(snapshot.dirty)])
    return rows


def lines(target: Target) -> list[str]:
    snapshot = UsageReader(target.layout, target.memory).read()
    usages = []
    if target.umem is not None:
        usages = caches(target.layout, target.umem, target.memory)
    live = snapshot.live_bytes + sum(u.in_use * u.cache.size for u in usages if u.cache.home)
    parts = [
        table(_CLASSES, _class_rows(snapshot)),
        table(_LEVELS, level_rows(snapshot)),
        slot_table.lines(target.layout, target.memory),
    ]
    if target.umem is not None:
        parts += [cache_lines(usages), arena_lines(target.umem, target.memory)]
    return [
        *(line for part in parts if part for line in (*part, "")),
        f"{target.title}: Terrace {target.layout.library_version}, rung {snapshot.rung}; live "
        f"{human_bytes(live)}; mapped {human_bytes(snapshot.committed)}",
    ]
