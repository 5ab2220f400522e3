# SPDX-License-Identifier: MIT OR Apache-2.0
"""The words of the tables that `terrace run` ends with; how they are drawn is report's matter."""

import os
import sys
from collections.abc import Iterator
from typing import Any

from terrace.messages import count
from terrace.report.stats import Statistics

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


def class_label(size: int) -> str:
    """A size class in the table of size classes."""
    return human_bytes(size) if size >= 10240 else f"{size} B"


def cells(
    values: dict[str, int], columns: list[dict[str, str]], *, exact: bool = True
) -> list[str]:
    """A row of values, as the columns of the statistics have them."""
    return [cell(values.get(column["key"]), column["unit"], exact=exact) for column in columns]


def class_rows(total: Statistics, *, exact: bool = True) -> Iterator[list[str]]:
    """Size, level and values of each size class and level that did something."""
    for row in total["classes"]:
        label = class_label(row["size"])
        for level, values in row["levels"].items():
            if any(values.values()):
                yield [label, level, *cells(values, total["columns"], exact=exact)]
                label = ""


def levels_title(total: Statistics) -> str:
    """What stands above the table of levels."""
    title = f"What each level of Terrace did in {total.get('command', 'the program')}"
    if total["processes"] > 1:
        title += f" (sum of {count(total['processes'], 'process')})"
    return title


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


def abandon_stderr() -> None:
    """Nobody reads it: keeps the interpreter from trying again while it shuts down."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
