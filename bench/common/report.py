# SPDX-License-Identifier: MIT OR Apache-2.0
"""Tables on the terminal and as Markdown, plots as SVG."""

from __future__ import annotations

import argparse
import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path

import hardware
from terminal import Console, Table

ROOT = Path(__file__).resolve().parent.parent.parent


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


class Report:
    """Collects what a driver says, after a line on the machine; the same goes to the terminal and into NAME.md."""

    HEAD = 2  # lines on the machine

    def __init__(self, name: str, out: Path) -> None:
        self._path = out / f"{name}.md"
        self._where = hardware.sentence()
        self._lines: list[str] = [self._where, ""]
        self._console = Console(width=None if sys.stdout.isatty() else 120)
        self._console.print(self._where, markup=False, highlight=False)

    def say(self, text: str) -> None:
        self._lines += [text, ""]
        self._console.print(text, highlight=False)

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        table = Table()
        for i, column in enumerate(columns):
            table.add_column(column, justify="left" if i == 0 else "right")
        cells = [[str(cell) for cell in row] for row in rows]
        for row in cells:
            table.add_row(*row)
        self._console.print(table)
        self._lines.append("| " + " | ".join(columns) + " |")
        self._lines.append("|" + "|".join(["---"] + ["--:"] * (len(columns) - 1)) + "|")
        self._lines += ["| " + " | ".join(row) + " |" for row in cells] + [""]

    def close(self) -> None:
        self._path.write_text("\n".join(self._lines))
        self._console.print(f"[dim]{self._path.parent}: {self._path.name} and what goes with it[/dim]")


def figures(count: int, width: float, height: float):  # type: ignore[no-untyped-def]
    """A matplotlib figure with sets of axes side by side, all of the same scale, and reproducible SVG."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "terrace"
    import matplotlib.pyplot as plt

    fig, axes = plt.subplots(1, count, figsize=(count * width, height), layout="constrained", squeeze=False, sharex=True, sharey=True)
    for one in axes.flat:
        one.grid(alpha=0.3)
    return fig, list(axes.flat)


def figure(width: float = 8, height: float = 4.5):  # type: ignore[no-untyped-def]
    """With one set of axes."""
    fig, (axes,) = figures(1, width, height)
    return fig, axes


def plain_numbers(*axes, steps: Sequence[float] = ()) -> None:  # type: ignore[no-untyped-def]
    """Ticks of a logarithmic axis as people write them: 2, 1,000. `steps`: which of a decade, if not only the first."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    form = FuncFormatter(lambda value, _: f"{value:,g}")
    for axis in axes:
        if steps:
            axis.set_major_locator(LogLocator(subs=steps))
        axis.set_major_formatter(form)
        axis.set_minor_formatter(NullFormatter())


def can_plot(options: argparse.Namespace) -> bool:
    """In a smoke test, tables are enough where there is no matplotlib."""
    return not options.smoke or importlib.util.find_spec("matplotlib") is not None


def save(fig, path: Path) -> None:  # type: ignore[no-untyped-def]
    fig.savefig(path, metadata={"Date": None})
