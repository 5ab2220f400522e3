# SPDX-License-Identifier: MIT OR Apache-2.0
"""What is in a trace, as tables on stdout."""

from collections.abc import Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from terrace.report.cells import human_bytes

BAR = 30  # characters
KINDS = ("malloc", "calloc", "aligned", "realloc", "free")
SHOWN_THREADS = 8


def _table(title: str, columns: Sequence[str]) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD)
    for i, column in enumerate(columns):
        table.add_column(column, justify="left" if i == len(columns) - 1 else "right", no_wrap=True)
    return table


def _bar(value: int, largest: int) -> str:
    return "#" * max(1, round(BAR * value / largest)) if value else ""


def _part(value: int, total: int) -> str:
    return f"{100 * value / total:.1f} %" if total else "-"


def facts(summary: dict[str, Any]) -> list[tuple[str, str]]:
    """What is one line each."""
    allocated = sum(entry["count"] for entry in summary["sizes"])
    threads = sorted(summary["threads"], reverse=True)
    shown = ", ".join(f"{n:,}" for n in threads[:SHOWN_THREADS])
    more = f" and {len(threads) - SHOWN_THREADS} more" if len(threads) > SHOWN_THREADS else ""
    rows = [
        ("calls", f"{summary['calls']:,}"),
        *((f"  {kind}", f"{summary[kind]:,}") for kind in KINDS),
        ("threads", f"{len(threads)} ({shown}{more} calls)"),
        ("freed by another thread", _part(summary["from_other_threads"], allocated)),
        (
            "live at most",
            f"{human_bytes(summary['peak_bytes'])}; {summary['peak_blocks']:,} blocks",
        ),
        (
            "live at the end",
            f"{human_bytes(summary['end_bytes'])}; {summary['end_blocks']:,} blocks",
        ),
    ]
    if summary["unknown"]:
        rows.append(("freed, but not of this trace", f"{summary['unknown']:,}"))
    return rows


def sizes_table(summary: dict[str, Any]) -> Table:
    """How many blocks of which size: powers of two."""
    entries = summary["sizes"]
    total = sum(entry["count"] for entry in entries)
    largest = max((entry["count"] for entry in entries), default=1)
    table = _table("Sizes asked for", ["up to", "blocks", "part", "bytes", ""])
    for e in entries:
        cells = (human_bytes(e["up_to"]), f"{e['count']:,}", _part(e["count"], total))
        table.add_row(*cells, human_bytes(e["bytes"]), _bar(e["count"], largest))
    return table


def lifetimes_table(summary: dict[str, Any]) -> Table:
    """How many calls, of any thread, until a block was freed."""
    entries = summary["lifetimes"]
    total = sum(entry["count"] for entry in entries)
    largest = max((entry["count"] for entry in entries), default=1)
    table = _table("Lifetimes, in calls until the block was freed", ["up to", "blocks", "part", ""])
    for e in entries:
        part = _part(e["count"], total)
        table.add_row(f"{e['up_to']:,}", f"{e['count']:,}", part, _bar(e["count"], largest))
    return table


def print_summary(summary: dict[str, Any]) -> None:
    """On stdout: it is what was asked for."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = 100
    head = Table(box=None, show_header=False, pad_edge=False)
    for key, value in facts(summary):
        head.add_row(key, value)
    console.print(f"[bold]malloc calls of {escape(summary['command'])}[/bold]")
    console.print(head)
    console.print()
    console.print(sizes_table(summary))
    console.print(lifetimes_table(summary))
