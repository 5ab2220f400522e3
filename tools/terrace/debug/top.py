# SPDX-License-Identifier: MIT OR Apache-2.0
"""`terrace top`: what is live, by class, on a screen that refreshes."""

import time
from dataclasses import dataclass

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from terrace.debug.target import Target
from terrace.debug.umastat import level_rows
from terrace.debug.umem.usage import with_caches
from terrace.debug.usage import Snapshot, UsageReader
from terrace.errors import TerraceError
from terrace.report.cells import human_bytes, human_count

_LINES_BESIDE = 14  # of the screen, that are not classes


@dataclass(frozen=True)
class Rates:
    """By size class, per second."""

    allocations: dict[int, float]
    live_bytes: float

    @staticmethod
    def between(old: Snapshot, new: Snapshot, seconds: float) -> "Rates":
        before = {u.owner.size_class: u.allocations for u in old.classes}
        rates = {
            u.owner.size_class: (u.allocations - before.get(u.owner.size_class, 0)) / seconds
            for u in new.classes
        }
        return Rates(rates, (new.live_bytes - old.live_bytes) / seconds)


def _numbers(first: str, *names: str) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column(first, no_wrap=True, justify="right" if first == "size" else "left")
    for name in names:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _classes(snapshot: Snapshot, rates: Rates, rows: int) -> Table:
    table = _numbers("size", "live", "in use", "in slots", "in depots", "memory", "mallocs/s")
    for u in sorted(snapshot.classes, key=lambda u: -u.live_bytes)[:rows]:
        table.add_row(
            u.owner.name, human_bytes(u.live_bytes), f"{u.in_use:,}", f"{u.in_slots:,}",
            f"{u.in_depots:,}", human_bytes(u.memory),
            human_count(round(rates.allocations.get(u.owner.size_class, 0)), exact=False),
        )  # fmt: skip
    large = snapshot.large
    table.add_row(
        "large", human_bytes(large.bytes), f"{large.blocks:,}", f"{large.kept:,}", "-",
        human_bytes(large.bytes + large.kept_bytes), "-",
    )  # fmt: skip
    return table


def _levels(snapshot: Snapshot) -> Table:
    table = _numbers("level", "parts", "magazines", "free blocks", "free memory")
    for row in level_rows(snapshot):
        table.add_row(*row)
    return table


def screen(target: Target, snapshot: Snapshot, rates: Rates, height: int) -> Group:
    change = rates.live_bytes
    sign = "-" if change < 0 else "+"
    title = Text(
        f"{target.title}: live {human_bytes(snapshot.live_bytes)} "
        f"({sign}{human_bytes(round(abs(change)))}/s), "
        f"{human_count(round(sum(rates.allocations.values())), exact=False)} mallocs/s, "
        f"mapped {human_bytes(snapshot.committed)}, rung {snapshot.rung}"
    )
    rows = max(height - _LINES_BESIDE, 3)
    return Group(title, _classes(snapshot, rates, rows), _levels(snapshot))


def top(target: Target, seconds: float, looks: int | None) -> int:
    """Until Ctrl-C, the process's end, or so many looks."""
    console = Console(highlight=False)
    reader = UsageReader(target.layout, target.memory)
    old, then = with_caches(target, reader.read()), time.monotonic()
    rates = Rates({}, 0)
    done = 0
    with Live(console=console, auto_refresh=False, screen=console.is_terminal) as shown:
        while True:
            shown.update(screen(target, old, rates, console.height), refresh=True)
            done += 1
            if looks is not None and done >= looks:
                return 0
            try:
                time.sleep(seconds)
                new, now = with_caches(target, reader.read()), time.monotonic()
            except (TerraceError, KeyboardInterrupt):
                return 0  # the process has ended, or somebody has seen enough
            rates = Rates.between(old, new, now - then)
            old, then = new, now
