# SPDX-License-Identifier: MIT OR Apache-2.0
"""The tables that `terrace run` ends with where rich can not be had: plain lines."""

from __future__ import annotations

import sys

from terrace.report.cells import cell, class_label, levels_title, summary
from terrace.report.stats import Statistics


def _lines(rows: list[list[str]], names: int) -> list[str]:
    """Columns as wide as their widest cell; the first `names` are flush left, numbers right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        "  ".join(
            text.ljust(width) if i < names else text.rjust(width)
            for i, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def levels_lines(total: Statistics) -> list[str]:
    """One row for each level, nearest to the program first."""
    columns = total["columns"]
    rows = [["level", *(column["title"] for column in columns)]]
    for row in total["levels"]:
        values = row["values"]
        rows.append([row["level"], *(cell(values.get(c["key"]), c["unit"]) for c in columns)])
    return [levels_title(total), *_lines(rows, 1)]


def classes_lines(total: Statistics) -> list[str]:
    """One row for each size class and level that did something; what the columns mean."""
    columns = total["columns"]
    rows = [["size", "level", *(column["title"] for column in columns)]]
    for row in total["classes"]:
        label = class_label(row["size"])
        for level, values in row["levels"].items():
            if any(values.values()):
                cells = [cell(values.get(c["key"]), c["unit"]) for c in columns]
                rows.append([label, level, *cells])
                label = ""
    meanings = [f"{c['title']} ({c['unit']}, {c['kind']}): {c['help']}" for c in columns]
    return ["", "By size class", *_lines(rows, 2), *meanings]


def print_report(total: Statistics, *, per_class: bool) -> None:
    """Like report.print_report()."""
    if sys.stderr is None:
        return
    lines = [*levels_lines(total), "", summary(total)]
    if per_class:
        lines += classes_lines(total)
    try:
        print("\n".join(lines), file=sys.stderr, flush=True)
    except BrokenPipeError:
        from terrace.report.cells import abandon_stderr

        abandon_stderr()
