# SPDX-License-Identifier: MIT OR Apache-2.0
"""The tables that `terrace run` ends with, on stderr."""

import sys
from collections.abc import Callable, Iterable
from functools import partial

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.measure import measure_renderables
from rich.table import Table

from terrace.report.cells import abandon_stderr, cells, class_rows, levels_title, summary
from terrace.report.stats import Statistics


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


def levels_table(total: Statistics, *, exact: bool = True) -> Table:
    """One row for each level, nearest to the program first."""
    table = _table(escape(levels_title(total)), ["level"], total["columns"], exact)
    for row in total["levels"]:
        table.add_row(row["level"], *cells(row["values"], total["columns"], exact=exact))
    return table


def classes_table(total: Statistics, *, exact: bool = True) -> Table:
    """One row for each size class and level that did something."""
    table = _table("By size class", ["size", "level"], total["columns"], exact)
    for row in class_rows(total, exact=exact):
        table.add_row(*row)
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
        abandon_stderr()
