# SPDX-License-Identifier: MIT OR Apache-2.0
"""The tables that `terrace run` ends with, on stderr."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.measure import measure_renderables
from rich.table import Table

from terrace.messages import count
from terrace.stats import Statistics

SUMMARY_MEMORY = ("held", "live", "purged")


def _scaled(value: int, step: int, units: tuple[str, ...]) -> str:
    """Three significant digits and the unit: 1234567 -> '1.23 M'."""
    scaled = float(value)
    unit = ""
    for unit in units:
        scaled /= step
        if scaled < step or unit == units[-1]:
            break
    digits = 2 if scaled < 9.995 else 1 if scaled < 99.95 else 0
    return f"{scaled:.{digits}f} {unit}"


def human_bytes(value: int) -> str:
    """1536 -> '1.50 KiB'."""
    return f"{value} B" if value < 1024 else _scaled(value, 1024, ("KiB", "MiB", "GiB", "TiB"))


def human_count(value: int, *, exact: bool) -> str:
    """All digits, or where there is no room for them only those that tell orders of magnitude."""
    return f"{value:,}" if exact or value < 100_000 else _scaled(value, 1000, ("k", "M", "G", "T"))


def cell(value: int | None, unit: str, *, exact: bool = True) -> str:
    """A value as people read it; '-' where the column has no meaning at that level."""
    if value is None:
        return "-"
    return human_bytes(value) if unit == "bytes" else human_count(value, exact=exact)


def _table(title: str, first: Iterable[str], columns: list[dict[str, str]], exact: bool) -> Table:
    table = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=SIMPLE_HEAD if exact else None,
        padding=(0, 1) if exact else (0, 1, 0, 0),
        pad_edge=False,
    )
    for name in first:
        table.add_column(name, no_wrap=True)
    for column in columns:
        table.add_column(column["title"], justify="right", no_wrap=True)
    return table


def _cells(values: dict[str, int], columns: list[dict[str, str]], exact: bool) -> list[str]:
    return [cell(values.get(column["key"]), column["unit"], exact=exact) for column in columns]


def levels_table(total: Statistics, *, exact: bool = True) -> Table:
    """One row for each level, nearest to the program first."""
    title = f"What each level of Terrace did in {escape(total.get('command', 'the program'))}"
    if total["processes"] > 1:
        title += f" (sum of {count(total['processes'], 'process')})"
    table = _table(title, ["level"], total["columns"], exact)
    for row in total["levels"]:
        table.add_row(row["level"], *_cells(row["values"], total["columns"], exact))
    return table


def classes_table(total: Statistics, *, exact: bool = True) -> Table:
    """One row for each size class and level that did something."""
    table = _table("By size class", ["size", "level"], total["columns"], exact)
    for row in total["classes"]:
        label = human_bytes(row["size"]) if row["size"] >= 10240 else f"{row['size']} B"
        for level, values in row["levels"].items():
            if any(values.values()):
                table.add_row(label, level, *_cells(values, total["columns"], exact))
                label = ""
    return table


def _width(target: Console, table: Table) -> int:
    return measure_renderables(target, target.options.update(max_width=1000), [table]).maximum


def _print_table(target: Console, make: Callable[..., Table]) -> None:
    """With all digits if the lines hold them; longer lines rather than cut words."""
    table = make(exact=True)
    if target.is_terminal and _width(target, table) > target.width:
        table = make(exact=False)
    target.width = max(target.width, _width(target, table))
    target.print(table)


def legend(total: Statistics) -> Table:
    """What the columns mean, in the library's words."""
    table = Table(box=None, show_header=False, pad_edge=False)
    for column in total["columns"]:
        table.add_row(f"{column['title']} ({column['unit']}, {column['kind']})", column["help"])
    return table


def summary(total: Statistics) -> str:
    """The line below the table."""
    rungs: dict[str, int] = total["rungs"]
    rung = total["rung"] if len(rungs) == 1 else ", ".join(f"{r} x {n}" for r, n in rungs.items())
    memory: dict[str, Any] = total["memory"]
    parts = [
        f"rung {rung}",
        count(total["slots"], "slot"),
        f"placement {total['placement']}",
        *(f"{key} {human_bytes(memory[key])}" for key in SUMMARY_MEMORY if key in memory),
    ]
    return "; ".join(parts)


def print_report(total: Statistics, *, per_class: bool) -> None:
    """The levels, the line below them, and on request the size classes and the legend."""
    if sys.stderr is None:
        return
    target = Console(stderr=True, highlight=False)
    try:
        _print_table(target, partial(levels_table, total))
        target.print(escape(summary(total)), soft_wrap=True)
        if per_class:
            target.print()
            _print_table(target, partial(classes_table, total))
            target.print(legend(total))
    except BrokenPipeError:
        # Nobody reads: keep the interpreter from trying again while it shuts down.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
