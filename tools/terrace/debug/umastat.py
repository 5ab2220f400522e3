# SPDX-License-Identifier: MIT OR Apache-2.0
"""`terrace umastat`: a line for each size class, a line for each level."""

from __future__ import annotations

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
    rows = [
        [
            u.owner.name,
            *(f"{n:,}" for n in (u.in_use, u.in_slots, u.in_depots, u.total)),
            human_bytes(u.memory), f"{u.allocations:,}", f"{u.failures:,}",
        ]
        for u in snapshot.classes
    ]  # fmt: skip
    large = snapshot.large
    total = sum(u.memory for u in snapshot.classes)
    rows.append(
        [
            "large", f"{large.blocks:,}", f"{large.kept:,}", "0", f"{large.blocks + large.kept:,}",
            human_bytes(large.bytes + large.kept_bytes), f"{large.allocations:,}", "-",
        ]
    )  # fmt: skip
    sums = zip(
        *((u.in_use, u.in_slots, u.in_depots, u.total, u.allocations) for u in snapshot.classes),
        strict=True,
    )
    if snapshot.classes:
        in_use, in_slots, in_depots, places, allocations = (sum(column) for column in sums)
        rows.append(
            [
                "total", f"{in_use + large.blocks:,}", f"{in_slots + large.kept:,}",
                f"{in_depots:,}", f"{places + large.blocks + large.kept:,}",
                human_bytes(total + large.bytes + large.kept_bytes),
                f"{allocations + large.allocations:,}",
                f"{sum(u.failures for u in snapshot.classes):,}",
            ]
        )  # fmt: skip
    return rows


def _level_rows(snapshot: Snapshot) -> list[list[str]]:
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
    live = sum(u.live_bytes for u in snapshot.classes) + snapshot.large.bytes
    live += sum(u.in_use * u.cache.size for u in usages if u.cache.home)
    parts = [
        table(_CLASSES, _class_rows(snapshot)),
        table(_LEVELS, _level_rows(snapshot)),
        slot_table.lines(target.layout, target.memory),
    ]
    if target.umem is not None:
        parts += [cache_lines(usages), arena_lines(target.umem, target.memory)]
    return [
        *(line for part in parts if part for line in (*part, "")),
        f"{target.title}: Terrace {target.layout.library_version}, rung {snapshot.rung}; live "
        f"{human_bytes(live)}; mapped {human_bytes(snapshot.committed)}",
    ]
