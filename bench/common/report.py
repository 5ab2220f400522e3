# SPDX-License-Identifier: MIT OR Apache-2.0
"""What a driver says, on the terminal, as Markdown and as one HTML file that needs nothing else; plots as SVG."""

import argparse
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from terminal import Console, drawn  # first, as it says what is not here
from terminal import Table as Shown

import hardware
import jinja2
from interleave import Spread
from markupsafe import Markup

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent


def arguments(description: str | None, argv: Sequence[str], rounds: int) -> argparse.Namespace:
    """What every driver understands."""
    parser = argparse.ArgumentParser(prog="terrace bench", description=description)
    parser.add_argument("--rounds", type=int, default=rounds, help=f"default {rounds}")
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "release", help="build directory with library and programs")
    parser.add_argument("--library", type=Path, help="another object to preload than the build directory's")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "bench", help="where tables, plots and raw numbers go")
    parser.add_argument("--smoke", action="store_true", help="as short as possible: does it work?")
    options = parser.parse_args(argv)
    options.library = (options.library or options.build / "libterrace.so").resolve()
    options.out.mkdir(parents=True, exist_ok=True)
    if options.smoke:
        options.rounds = 1
    return options


@dataclass(frozen=True)
class Table:
    """Cells are what str() makes of them; one with an `order` is sorted by that."""

    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    name: str = ""
    title: str = ""
    help: str = ""
    marked: str = ""  # the row whose first cell says this stands out
    bests: frozenset[tuple[int, int]] = field(default_factory=frozenset)  # row and column of the cells that stand out

    def markdown(self) -> list[str]:
        lines = ["| " + " | ".join(self.columns) + " |", "|---" + "|--:" * (len(self.columns) - 1) + "|"]
        return lines + ["| " + " | ".join(str(cell).replace("|", "\\|") for cell in row) + " |" for row in self.rows] + [""]

    def print(self, console: Console) -> None:
        shown = Shown(title=self.title or None)
        for i, column in enumerate(self.columns):
            shown.add_column(column, justify="left" if i == 0 else "right", overflow="fold")
        for row in self.rows:
            shown.add_row(*(str(cell).replace("[", "\\[") for cell in row))
        console.print(shown)


Block = tuple[str, Any]  # what page.html has to do with it: its kind, and what it shows


def page(title: str, where: str, blocks: Iterable[Block], links: Sequence[tuple[str, str]] = ()) -> str:
    """An HTML file. `links` are names of blocks, and what they are called at its head."""
    environment = jinja2.Environment(loader=jinja2.FileSystemLoader(HERE), autoescape=True, trim_blocks=True, lstrip_blocks=True)
    # The text of a script must not contain what would end it.
    environment.filters["json"] = lambda figure: Markup(figure.to_json().replace("<", "\\u003c"))
    blocks, plotly = list(blocks), ""
    if any(kind == "plot" for kind, _ in blocks):
        from plotly.offline import get_plotlyjs

        plotly = Markup(get_plotlyjs().replace("</script", "<\\/script"))
    return environment.get_template("page.html").render(title=title, where=where, blocks=blocks, links=links, plotly=plotly)


class Report:
    """Collects what a driver says, after a line on the machine, for the terminal and NAME.md; with a title also for NAME.html."""

    def __init__(self, name: str, out: Path, title: str = "", checks_first: bool = False) -> None:
        """`checks_first`: the figures to be reached stand at the head of what is written, not at its end."""
        self._path, self._title, self._checks_first = out / f"{name}.md", title, checks_first
        self._where = hardware.sentence()
        self._blocks: list[Block] = []
        self._lines: list[list[str]] = []  # in Markdown, of each block
        self._checks: list[tuple[str, str, str, bool | None]] = []
        self._console = Console(width=None if sys.stdout.isatty() else 120)
        self._console.print(self._where, markup=False, highlight=False)

    def _put(self, kind: str, block: Any, *lines: str) -> None:
        self._blocks.append((kind, block))
        self._lines.append(list(lines))

    def _tell(self, kind: str, text: str, line: str) -> None:
        self._put(kind, text, line, "")
        self._console.print(line, highlight=False)

    def head(self, text: str) -> None:
        self._tell("head", text, f"## {text}")

    def say(self, text: str) -> None:
        self._tell("say", text, text)

    def finding(self, agrees: bool | None, text: str, why: str = "") -> None:
        """A sentence on what the paper says, and whether the numbers say so, too; `why` they do not, as far as that is known. None:
        a part of it was not measured, and nothing is said."""
        if agrees is not None:
            text += f" Why: {why}." if why and not agrees else ""
            kind = "agrees" if agrees else "differs"
            self._tell(kind, text, f"{kind}: {text}")

    def check(self, what: str, found: str, limit: str, met: bool | None) -> None:
        """A figure that is to be reached; all of them end up in one table. None: it was not measured."""
        self._checks.append((what, found, limit, met))

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        table = Table(columns, rows)
        table.print(self._console)
        self._put("table", table, *table.markdown())

    def panels(
        self, name: str, rows: int, columns: int, draw: Callable[[list[Any]], None], size: tuple[float, float] = (5, 3.8)
    ) -> None:
        """`draw` gets the axes, row by row; the plot goes to NAME.svg and into the page."""
        fig, axes = figures(rows, columns, *size, shared=False)
        draw(axes)
        self._show(name, lambda path: save(fig, path))

    def terminal(self, name: str, title: str, text: str) -> None:
        """What a command has printed, as it looks on a terminal: goes to NAME.svg and into the page."""
        self._show(name, lambda path: path.write_text(drawn(title, text)))

    def _show(self, name: str, write: Callable[[Path], object]) -> None:
        path = self._path.with_name(f"{name}.svg")
        write(path)
        text = path.read_text()
        self._put("picture", Markup(text[text.index("<svg") :]), f"![{name}]({path.name})", "")

    def _put_checks(self) -> None:
        before = len(self._blocks)
        self.head("Figures to be reached")
        reached = {True: "yes", False: "NO", None: "-"}
        self.table(["what", "found", "limit", "reached"], [[a, b, c, reached[met]] for a, b, c, met in self._checks])
        if self._checks_first:
            for parts in (self._blocks, self._lines):
                parts[:] = parts[before:] + parts[:before]

    def close(self) -> None:
        if self._checks:
            self._put_checks()
        self._path.write_text("\n".join([self._where, "", *(line for lines in self._lines for line in lines)]))
        if self._title:
            self._path.with_suffix(".html").write_text(page(self._title, self._where, self._blocks), encoding="utf-8")
        self._console.print(f"[dim]{self._path.parent}: {self._path.name} and what goes with it[/dim]")


Part = Callable[[argparse.Namespace, Report], None]


def run_parts(description: str | None, argv: Sequence[str], parts: Mapping[str, Part], name: str, title: str, can_store: bool = True) -> int:
    """A driver of several parts, by the names that they are asked for by, on one page; without names all of them. `can_store`: with
    --stored they show what was measured before."""
    stored = can_store and "--stored" in argv
    options = arguments(description, [a for a in argv if a not in parts and not (stored and a == "--stored")], rounds=5)
    options.stored = stored
    report = Report(name, options.out, title)
    for part in [a for a in argv if a in parts] or parts:
        parts[part](options, report)
    report.close()
    return 0


def figures(rows: int, columns: int, width: float, height: float, shared: bool = True) -> tuple[Any, list[Any]]:
    """A matplotlib figure with sets of axes, row by row, all of the same scale if `shared`, and reproducible SVG."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "terrace"
    import matplotlib.pyplot as plt

    size = (columns * width, rows * height)
    fig, axes = plt.subplots(rows, columns, figsize=size, layout="constrained", squeeze=False, sharex=shared, sharey=shared)
    for one in axes.flat:
        one.grid(alpha=0.3)
    return fig, list(axes.flat)


def speedups(axis: Any, title: str, sizes: Sequence[str], lines: Mapping[str, Sequence[Spread | None]], over: str) -> None:
    """A line with quartiles for each buffer's size, by size of the TLABs."""
    for label, spreads in lines.items():
        found = [(x, s.median, s.median - s.low, s.high - s.median) for x, s in enumerate(spreads) if s is not None]
        if found:
            x, middle, below, above = zip(*found, strict=True)
            axis.errorbar(x, middle, [below, above], marker=".", lw=1, capsize=2, label=label)
    axis.set_xticks(range(len(sizes)), sizes, rotation=45)
    axis.set(title=title, xlabel="TLAB", ylabel=f"speed-up over {over}")


def plain_numbers(*axes: Any, steps: Sequence[float] = ()) -> None:
    """Ticks of a logarithmic axis as people write them: 2, 1,000. `steps`: which of a decade, if not only the first."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    form = FuncFormatter(lambda value, _: f"{value:,g}")
    for axis in axes:
        if steps:
            axis.set_major_locator(LogLocator(subs=steps))
        axis.set_major_formatter(form)
        axis.set_minor_formatter(NullFormatter())


def save(fig: Any, path: Path) -> None:
    import matplotlib.pyplot as plt

    fig.savefig(path, metadata={"Date": None})
    plt.close(fig)
