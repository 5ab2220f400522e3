# SPDX-License-Identifier: MIT OR Apache-2.0
"""The comparison as one HTML file that needs nothing else, and as Markdown."""

from __future__ import annotations

import html
import importlib.util
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from interleave import AGAIN
from look import Plot
from plots import all_plots
from summary import Comparison
from tables import Cell, Table, all_tables

HERE = Path(__file__).resolve().parent
TITLE = "Terrace beside other allocators"
FOLDED = "per-"  # tables of this kind are long: folded at first
LONG = 40  # characters: text, not a number
LAST = ("failures", "allocators", "machine")  # tables that each page has, for those who ask
LINKS = (("overview", "Summary"), ("losses", "Where Terrace loses"))

METHOD = (
    "Every workload runs once a round under each allocator, one directly after the other, and who begins changes from round to round. "
    "Ratios are taken within a round, so that a machine that becomes slower or faster does not matter; what is told is their median "
    "over the rounds. Memory and processor time are those of the process and its children, as the kernel counts them."
)


def has_plotting() -> bool:
    return importlib.util.find_spec("plotly") is not None


def _library() -> str:
    from plotly.offline import get_plotlyjs

    # The text of a script must not contain what would end it.
    return str(get_plotlyjs()).replace("</script", "<\\/script")


def _embedded(value: Any) -> str:
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c")


def _shown(cell: Cell) -> str:
    """The interval of an estimate is set smaller than its middle."""
    head, bracket, rest = cell.text.partition(" (")
    if bracket and isinstance(cell.order, float):
        return f"<span class=middle>{html.escape(head)}</span> <span class=interval>({html.escape(rest)}</span>"
    return f"<span class=middle>{html.escape(cell.text)}</span>" if isinstance(cell.order, float) else html.escape(cell.text)


def _bests(table: Table) -> set[tuple[int, int]]:
    """Row and column of the smallest number of each column, or row; the second run of the reference is out of the contest."""
    if not table.best:
        return set()
    lines: dict[int, list[tuple[float, tuple[int, int]]]] = {}
    for r, row in enumerate(table.rows):
        for c, cell in enumerate(row):
            known = c >= table.first and isinstance(cell.order, float)
            if known and not {AGAIN} & set(f"{row[0].text} {table.columns[c]}".split()):
                lines.setdefault(r if table.across else c, []).append((float(cell.order or 0), (r, c)))
    smallest = [min(line) for line in lines.values()]
    # A row has no cell for the reference, which is 1.
    return {place for value, place in smallest if value < 1 or not table.across}


def _table(table: Table) -> str:
    bests = _bests(table)
    head = "".join(f"<th scope=col><button type=button>{html.escape(c)}</button></th>" for c in table.columns)
    body = []
    for r, row in enumerate(table.rows):
        cells = []
        for c, cell in enumerate(row):
            kind = "best" if (r, c) in bests else "text" if len(cell.text) > LONG and isinstance(cell.order, str) else ""
            order = html.escape("" if cell.order is None else str(cell.order), quote=True)
            cells.append(f'<td data-order="{order}"{f" class={kind}" if kind else ""}>{_shown(cell)}</td>')
        marked = " class=marked" if table.marked and row[0].text == table.marked else ""
        body.append(f"<tr{marked}>{''.join(cells)}</tr>")
    text = (
        f"<p>{html.escape(table.help)}</p><div class=scroll><table id=table-{table.name}><thead><tr>{head}</tr></thead>"
        f"<tbody>{''.join(body)}</tbody></table></div>"
    )
    title = html.escape(table.title)
    if not table.rows:
        return f"<h2 id={table.name}>{title}</h2><p>Nothing.</p>"
    if table.name.startswith(FOLDED):
        return f"<details><summary>{title}</summary>{text}</details>"
    return f"<h2 id={table.name}>{title}</h2>{text}"


def _plot(plot: Plot) -> str:
    figure = {"choices": [{"traces": c.traces, "layout": c.layout} for c in plot.choices]}
    options = "".join(f"<option value={i}>{html.escape(c.title)}</option>" for i, c in enumerate(plot.choices))
    chooser = (
        f"<label>{html.escape(plot.choose)}: <select id=choose-{plot.name}>{options}</select></label>" if len(plot.choices) > 1 else ""
    )
    return (
        f"<h2 id=plot-{plot.name}>{html.escape(plot.title)}</h2><p>{html.escape(plot.help)}</p>{chooser}"
        f"<div class=plot id={plot.name}></div><script type=application/json id=data-{plot.name}>{_embedded(figure)}</script>"
    )


def _navigation(links: Sequence[tuple[str, str]], plots: Sequence[Plot]) -> str:
    """`links` are those of the tables that come first."""
    ends = [("failures", "What failed"), ("every", "Every workload"), ("machine", "Machine")]
    found = [*links, *((f"plot-{p.name}", p.title) for p in plots), *ends]
    return "<nav>" + "".join(f'<a href="#{name}">{html.escape(title)}</a>' for name, title in found) + "</nav>"


def where_and_when(data: Comparison) -> str:
    machine = data.header.machine
    known = [machine.get(k, "") for k in ("processor", "vendor", "kernel", "C library")]
    return ", ".join(
        filter(None, [data.header.began, *known[:2], f"{machine.get('cores', '?')} cores", *known[2:], f"{data.rounds} rounds"])
    )


@dataclass(frozen=True)
class Content:
    """Of a page: what all of them have."""

    title: str
    where: str  # and when
    sentences: Sequence[str]
    tables: Sequence[Table]
    plots: Sequence[Plot] = ()
    links: Sequence[tuple[str, str]] = ()  # names and short titles of the tables to be found first


def document(content: Content) -> str:
    tables = {t.name: t for t in content.tables}
    failed, *last = [_table(tables.pop(name)) for name in LAST]
    folded = [_table(t) for t in tables.values() if t.name.startswith(FOLDED)]
    first = [_table(t) for t in tables.values() if not t.name.startswith(FOLDED)]
    listed = "".join(f"<li>{html.escape(s)}</li>" for s in content.sentences)
    parts = [
        "<!doctype html>\n<html lang=en><head><meta charset=utf-8><meta name=viewport content='width=device-width'>",
        f"<title>{content.title}</title>",
        f"<style>{(HERE / 'page.css').read_text()}</style></head>",
        f"<body><h1>{content.title}</h1><p class=where>{html.escape(content.where)}</p>",
        _navigation(content.links, content.plots),
        f"<ul class=findings>{listed}</ul>",
        *first,
        *map(_plot, content.plots),
        "" if has_plotting() else "<p>Without plots: the Python package plotly is not there.</p>",
        failed,
        "<h2 id=every>Every workload</h2>",
        *folded,
        "<h2>How it was measured</h2>",
        f"<p>{METHOD}</p>",
        *last,
        f"<script>{_library()}</script>" if content.plots else "",
        f"<script>{(HERE / 'page.js').read_text()}</script>",
        "</body></html>\n",
    ]
    return "\n".join(parts)


def as_markdown(content: Content) -> str:
    lines = [f"# {content.title}", "", content.where, "", *(f"- {s}" for s in content.sentences), ""]
    for table in content.tables:
        lines += [f"## {table.title}", "", table.help, ""]
        if not table.rows:
            lines += ["Nothing.", ""]
            continue
        lines.append("| " + " | ".join(table.columns) + " |")
        lines.append("|---" + "|--:" * (len(table.columns) - 1) + "|")
        lines += ["| " + " | ".join(str(cell).replace("|", "\\|") for cell in row) + " |" for row in table.rows] + [""]
    return "\n".join([*lines, "## How it was measured", "", METHOD, ""])


def _content(data: Comparison, sentences: Sequence[str], plots: Sequence[Plot] = ()) -> Content:
    return Content(TITLE, where_and_when(data), sentences, all_tables(data), plots, LINKS)


def page(data: Comparison, sentences: Sequence[str]) -> str:
    return document(_content(data, sentences, all_plots(data) if has_plotting() else ()))


def markdown(data: Comparison, sentences: Sequence[str]) -> str:
    return as_markdown(_content(data, sentences))
