# SPDX-License-Identifier: MIT OR Apache-2.0
"""A report with plots: what goes to the terminal and into NAME.md also becomes one HTML file, NAME.html."""

from __future__ import annotations

import argparse
import html
from collections.abc import Sequence
from pathlib import Path

from report import Report, can_plot, save

STYLE = """body{font:15px/1.5 system-ui,sans-serif;max-width:75rem;margin:2rem auto;padding:0 1rem;color:#222;background:#fff}
table{border-collapse:collapse;margin:1rem 0;font-size:13px;display:block;overflow-x:auto}
td,th{border:1px solid #ccc;padding:.2rem .6rem;text-align:right;white-space:nowrap}
td:first-child,th:first-child{text-align:left}
th{background:#f2f2f2}svg{max-width:100%;height:auto}.agrees{color:#06602a}.differs{color:#9a1c1c}
.agrees:before{content:"agrees: "}.differs:before{content:"differs: "}"""


class Page(Report):
    def __init__(self, options: argparse.Namespace, name: str, title: str, checks_first: bool = False) -> None:
        """`checks_first`: the figures to be reached stand at the head of what is written, not at its end."""
        super().__init__(name, options.out)
        self._options = options
        self._title = html.escape(title)
        self._target: Path = options.out / f"{name}.html"
        self._html: list[str] = []
        self._checks: list[tuple[str, str, str, bool | None]] = []
        self._checks_first = checks_first

    def head(self, text: str) -> None:
        super().say(f"## {text}")
        self._html.append(f"<h2>{html.escape(text)}</h2>")

    def say(self, text: str) -> None:
        super().say(text)
        self._html.append(f"<p>{html.escape(text)}</p>")

    def finding(self, agrees: bool, text: str, why: str = "") -> None:
        """A sentence on what the paper says, and whether the numbers say so, too; `why` they do not, as far as that is known."""
        if not agrees and why:
            text += f" Why: {why}."
        super().say(("agrees: " if agrees else "differs: ") + text)
        self._html.append(f"<p class={'agrees' if agrees else 'differs'}>{html.escape(text)}</p>")

    def check(self, what: str, found: str, limit: str, met: bool | None) -> None:
        """A figure that is to be reached; all of them end up in one table. None: it was not measured."""
        self._checks.append((what, found, limit, met))

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        super().table(columns, rows)
        head = "".join(f"<th>{html.escape(c)}</th>" for c in columns)
        body = "".join("<tr>" + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows)
        self._html.append(f"<table><tr>{head}</tr>{body}</table>")

    def panels(self, name: str, rows: int, columns: int, draw) -> None:  # type: ignore[no-untyped-def]
        """`draw` gets the axes, row by row; the plot goes to NAME.svg and into the page."""
        if not can_plot(self._options):
            return
        import matplotlib

        matplotlib.use("Agg")
        matplotlib.rcParams["svg.hashsalt"] = "terrace"
        import matplotlib.pyplot as plt

        fig, axes = plt.subplots(rows, columns, figsize=(5 * columns, 3.8 * rows), layout="constrained", squeeze=False)
        draw(list(axes.flat))
        for a in axes.flat:
            a.grid(alpha=0.3)
        path = self._options.out / f"{name}.svg"
        save(fig, path)
        plt.close(fig)
        self._show(path)

    def terminal(self, name: str, title: str, text: str) -> None:
        """What a command has printed, as it looks on a terminal: goes to NAME.svg and into the page."""
        from terminal import drawn

        path = self._options.out / f"{name}.svg"
        path.write_text(drawn(title, text))
        self._show(path)

    def _show(self, path: Path) -> None:
        text = path.read_text()
        self._html.append(text[text.index("<svg") :])
        self._lines += [f"![{path.stem}]({path.name})", ""]

    def _put_checks(self) -> None:
        lines, parts = len(self._lines), len(self._html)
        self.head("Figures to be reached")
        reached = {True: "yes", False: "NO", None: "-"}
        self.table(["what", "found", "limit", "reached"], [[a, b, c, reached[met]] for a, b, c, met in self._checks])
        if self._checks_first:
            self._html = self._html[parts:] + self._html[:parts]
            self._lines = self._lines[: self.HEAD] + self._lines[lines:] + self._lines[self.HEAD : lines]

    def close(self) -> None:
        if self._checks:
            self._put_checks()
        self._target.write_text(
            f"<!doctype html><html lang=en><meta charset=utf-8><title>{self._title}</title><style>{STYLE}</style><h1>{self._title}</h1>"
            f"<p>{html.escape(self._where)}</p>"
            + "\n".join(self._html) + "\n"
        )
        super().close()
