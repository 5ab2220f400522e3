# SPDX-License-Identifier: MIT OR Apache-2.0
"""Plain tables for commands whose output other programs read, too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Column:
    title: str
    is_number: bool = False


def table(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> list[str]:
    """Two spaces between columns; numbers are flush right."""
    cells = [[c.title for c in columns], *rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(columns))]
    return [
        "  ".join(
            text.rjust(width) if column.is_number else text.ljust(width)
            for column, text, width in zip(columns, row, widths, strict=True)
        ).rstrip()
        for row in cells
    ]
