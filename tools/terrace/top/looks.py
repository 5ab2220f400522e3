# SPDX-License-Identifier: MIT OR Apache-2.0
"""Looks at a process, one after the other, and what changed between two."""

import json
import sys
import time
from dataclasses import dataclass

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from terrace.debug import damage
from terrace.debug.live import LiveTarget
from terrace.debug.reports import open_target
from terrace.debug.umastat import level_rows
from terrace.debug.umem.usage import with_caches
from terrace.debug.usage import Snapshot, UsageReader
from terrace.errors import TerraceError
from terrace.report.cells import human_bytes, human_count

COLUMNS = ("size", "live", "in use", "in slots", "in depots", "memory", "mallocs/s")


@dataclass(frozen=True)
class Row:
    """A line of the table: of a size class, an object cache, or all large blocks."""

    name: str
    size: int  # 0: each has its own
    size_class: int
    live: int
    in_use: int
    in_slots: int
    in_depots: int
    memory: int
    allocations: int
    rate: float  # per second

    def values(self) -> tuple[float, ...]:
        """By which COLUMNS sort."""
        return (
            self.size, self.live, self.in_use, self.in_slots, self.in_depots, self.memory,
            self.rate,
        )  # fmt: skip

    def cells(self) -> tuple[str, ...]:
        return (
            self.name, human_bytes(self.live), f"{self.in_use:,}", f"{self.in_slots:,}",
            f"{self.in_depots:,}", human_bytes(self.memory), _count(self.rate),
        )  # fmt: skip


def _count(rate: float) -> str:
    return human_count(round(rate), exact=False)


@dataclass(frozen=True)
class Look:
    """What a process held, and how fast that changed since the look before."""

    snapshot: Snapshot
    rows: list[Row]
    live_rate: float
    rate: float

    def title(self, name: str) -> str:
        sign = "-" if self.live_rate < 0 else "+"
        return (
            f"{name}: live {human_bytes(self.snapshot.live_bytes)} "
            f"({sign}{human_bytes(round(abs(self.live_rate)))}/s), "
            f"{_count(self.rate)} mallocs/s, "
            f"mapped {human_bytes(self.snapshot.committed)}, rung {self.snapshot.rung}"
        )

    def sorted(self, column: int, ascending: bool, name: str = "") -> list[Row]:
        """Of the rows whose names have `name` in them."""
        chosen = [row for row in self.rows if name in row.name]
        return sorted(chosen, key=lambda row: row.values()[column], reverse=not ascending)


class Looker:
    """Looks again and again."""

    def __init__(self, target: LiveTarget) -> None:
        self._target = target
        self._reader = UsageReader(target.layout, target.memory)
        self._before: Snapshot | None = None
        self._then = 0.0

    def look(self) -> Look:
        """TerraceError: the process has ended, or executed another program."""
        with damage.expected("top"):
            new, now = with_caches(self._target, self._reader.read()), time.monotonic()
        old, seconds = self._before or new, max(now - self._then, 1e-9)
        self._before, self._then = new, now
        before = {u.owner.size_class: u.allocations for u in old.classes}
        rows = [
            Row(
                u.owner.name, u.owner.size, u.owner.size_class, u.live_bytes, u.in_use, u.in_slots,
                u.in_depots, u.memory, u.allocations,
                max(u.allocations - before.get(u.owner.size_class, 0), 0) / seconds,
            )
            for u in new.classes
        ]  # fmt: skip
        large = new.large
        rate = max(large.allocations - old.large.allocations, 0) / seconds
        rows.append(
            Row(
                "large", 0, 0, large.bytes, large.blocks, large.kept, 0,
                large.bytes + large.kept_bytes, large.allocations, rate,
            )
        )  # fmt: skip
        live_rate = (new.live_bytes - old.live_bytes) / seconds
        return Look(new, rows, live_rate, sum(row.rate for row in rows))


def process(name: str) -> LiveTarget:
    """By its number."""
    target = open_target(name)
    if not isinstance(target, LiveTarget):
        raise TerraceError("top: a core file does not change; see umastat")
    return target


def numbers(first: str, *names: str) -> Table:
    """Of rich: text on the left, numbers on the right."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column(first, no_wrap=True, justify="right" if first == "size" else "left")
    for name in names:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def levels(snapshot: Snapshot) -> Table:
    table = numbers("level", "parts", "magazines", "free blocks", "free memory")
    for row in level_rows(snapshot):
        table.add_row(*row)
    return table


def _as_json(target: LiveTarget, look: Look, seconds: float) -> str:
    snapshot = look.snapshot
    names = ("parts", "magazines", "blocks", "bytes")
    return json.dumps(
        {
            "pid": target.pid, "library": target.library, "rung": snapshot.rung,
            "version": target.layout.library_version, "seconds": seconds,
            "live_bytes": snapshot.live_bytes, "live_bytes_per_second": look.live_rate,
            "allocations_per_second": look.rate, "mapped_bytes": snapshot.committed,
            "purged_bytes": snapshot.purged, "free_span_bytes": snapshot.dirty,
            "classes": [
                {
                    "name": row.name, "size": row.size, "live_bytes": row.live,
                    "in_use": row.in_use, "in_slots": row.in_slots, "in_depots": row.in_depots,
                    "memory_bytes": row.memory, "allocations": row.allocations,
                    "allocations_per_second": row.rate,
                }
                for row in look.sorted(1, ascending=False)
            ],
            "levels": [
                {"name": level.name} | {n: getattr(level, n) for n in names}
                for level in snapshot.levels
            ],
        }
    )  # fmt: skip


def once(target: LiveTarget, seconds: float, as_json: bool) -> int:
    """Rates need two looks."""
    looker = Looker(target)
    looker.look()
    time.sleep(seconds)
    look = looker.look()
    if as_json:
        sys.stdout.write(_as_json(target, look, seconds) + "\n")
        return 0
    console = Console(highlight=False)
    console.print(Text(look.title(target.title)), soft_wrap=True)
    table = numbers(*COLUMNS)
    for row in look.sorted(1, ascending=False):
        table.add_row(*row.cells())
    console.print(table)
    console.print(levels(look.snapshot))
    return 0
