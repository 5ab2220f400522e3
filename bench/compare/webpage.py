# SPDX-License-Identifier: MIT OR Apache-2.0
"""The comparison as one HTML file that needs nothing else, and as Markdown."""

from collections.abc import Sequence
from dataclasses import dataclass

import report
from plots import Plot, all_plots
from report import Block, Table
from summary import Comparison
from tables import all_tables

TITLE = "Terrace beside other allocators"
FOLDED = "per-"  # tables of this kind are long: folded at first
LINKS = (("overview", "Summary"), ("losses", "Where Terrace loses"))
MEASURED = "How it was measured"

METHOD = (
    "Every workload runs once a round under each allocator, one directly after the other, and who begins changes from round to round. "
    "Ratios are taken within a round, so that a machine that becomes slower or faster does not matter; what is told is their median "
    "over the rounds. Memory and processor time are those of the process and its children, as the kernel counts them."
)


def where_and_when(data: Comparison) -> str:
    machine = data.header.machine
    known = [machine.get(k, "") for k in ("processor", "vendor", "kernel", "C library")]
    told = [data.header.began, *known[:2], f"{machine.get('cores', '?')} cores", *known[2:], f"{data.rounds} rounds"]
    return ", ".join(filter(None, told))


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
    failed, *last = (tables.pop(name) for name in ("failures", "allocators", "machine"))  # for those who ask
    folded: list[Block] = [("folded", t) for t in tables.values() if t.name.startswith(FOLDED)]
    first: list[Block] = [("table", t) for t in tables.values() if not t.name.startswith(FOLDED)]
    plots: list[Block] = [("plot", plot) for plot in content.plots]
    how: list[Block] = [("head", MEASURED), ("say", METHOD), *(("table", t) for t in last)]
    blocks = [("list", content.sentences), *first, *plots, ("table", failed), ("head", "Every workload"), *folded, *how]
    links = [*content.links, *((f"plot-{p.name}", p.title) for p in content.plots), ("failures", "What failed"), ("machine", "Machine")]
    return report.page(content.title, content.where, blocks, links)


def as_markdown(content: Content) -> str:
    lines = [f"# {content.title}", "", content.where, "", *(f"- {s}" for s in content.sentences), ""]
    for table in content.tables:
        lines += [f"## {table.title}", "", *([table.help, "", *table.markdown()] if table.rows else [table.help, "", "Nothing.", ""])]
    return "\n".join([*lines, f"## {MEASURED}", "", METHOD, ""])


def content(data: Comparison, sentences: Sequence[str]) -> Content:
    return Content(TITLE, where_and_when(data), sentences, all_tables(data), all_plots(data), LINKS)
