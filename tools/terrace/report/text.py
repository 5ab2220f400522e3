# SPDX-License-Identifier: MIT OR Apache-2.0
"""Plain tables: for output that other programs read, too, and where rich can not be had."""

from collections.abc import Sequence


def table(head: str | Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Two spaces between columns, as in a `head` of one line; under a title with > come numbers."""
    heads = head.split("  ") if isinstance(head, str) else head
    signs = [">" if title[:1] == ">" else "<" for title in heads]
    cells = [[title.removeprefix(">") for title in heads], *rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return ["  ".join(map("{:{}{}}".format, row, signs, widths)).rstrip() for row in cells]
