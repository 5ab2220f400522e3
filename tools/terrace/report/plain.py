# SPDX-License-Identifier: MIT OR Apache-2.0
"""The tables that `terrace run` ends with where rich can not be had: plain lines."""

import sys

from terrace.report.cells import abandon_stderr, cells, class_rows, levels_title, summary
from terrace.report.stats import Statistics
from terrace.report.text import table


def _heads(columns: list[dict[str, str]]) -> list[str]:
    return [f">{column['title']}" for column in columns]


def levels_lines(total: Statistics) -> list[str]:
    """One row for each level, nearest to the program first."""
    columns = total["columns"]
    rows = [[row["level"], *cells(row["values"], columns)] for row in total["levels"]]
    return [levels_title(total), *table(["level", *_heads(columns)], rows)]


def classes_lines(total: Statistics) -> list[str]:
    """One row for each size class and level that did something; what the columns mean."""
    columns = total["columns"]
    rows = list(class_rows(total))
    meanings = [f"{c['title']} ({c['unit']}, {c['kind']}): {c['help']}" for c in columns]
    return ["", "By size class", *table(["size", "level", *_heads(columns)], rows), *meanings]


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
        abandon_stderr()
