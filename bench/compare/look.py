# SPDX-License-Identifier: MIT OR Apache-2.0
"""How plots look, as what the plotting library in the page gets: traces and a layout, plain data.

An allocator has the same colour, symbol and dash in every plot. The colours are told apart by people with any vision, and each is
doubled by a symbol, a dash or a hatching.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from medians import Estimate
from summary import OURS

Json = dict[str, Any]

COLOURS = ("#000000", "#d55e00", "#0072b2", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#7a5195", "#8c8c8c", "#5b3a1e")
SYMBOLS = ("circle", "star", "square", "diamond", "triangle-up", "x", "cross", "triangle-down", "hexagon", "bowtie")
DASHES = ("dot", "solid", "dash", "dashdot", "longdash", "longdashdot")
HATCHES = ("", "/", "\\", "x", "-", "|", "+", ".")
FONT = {"family": "system-ui, sans-serif", "size": 13, "color": "#222"}
GRID = "#e4e4e4"


@dataclass(frozen=True)
class Choice:
    """One view of a plot; with several, the page offers a list."""

    title: str
    traces: list[Json]
    layout: Json


@dataclass(frozen=True)
class Plot:
    name: str
    title: str
    help: str  # how to read it
    choices: list[Choice]
    choose: str = "workload"


class Look:
    """Of an allocator, by its place among all."""

    def __init__(self, allocators: Sequence[str]) -> None:
        self._place = {name: i for i, name in enumerate(allocators)}

    def colour(self, name: str) -> str:
        return COLOURS[self._place[name] % len(COLOURS)]

    def marker(self, name: str) -> Json:
        ours = name == OURS
        return {
            "color": self.colour(name),
            "symbol": SYMBOLS[self._place[name] % len(SYMBOLS)],
            "size": 14 if ours else 9,
            "line": {"width": 1, "color": "#fff"},
        }

    def line(self, name: str) -> Json:
        return {"color": self.colour(name), "dash": DASHES[self._place[name] % len(DASHES)], "width": 3 if name == OURS else 1.5}

    def hatch(self, name: str) -> str:
        return HATCHES[self._place[name] % len(HATCHES)]

    def label(self, name: str) -> str:
        """Where it goes beside a point: neighbours in the list, which often lie close together, in different directions."""
        return ("top right", "bottom left", "bottom right", "top left")[self._place[name] % 4]


def errors(found: Sequence[Estimate], scale: float = 1) -> Json:
    return {
        "type": "data",
        "symmetric": False,
        "thickness": 1.2,
        "width": 3,
        "array": [(e.high - e.middle) * scale for e in found],
        "arrayminus": [(e.middle - e.low) * scale for e in found],
    }


def layout(height: int, **more: Any) -> Json:
    return {
        "height": height,
        "font": FONT,
        "paper_bgcolor": "#fff",
        "plot_bgcolor": "#fff",
        "hovermode": "closest",
        "margin": {"l": 70, "r": 20, "t": 30, "b": 60},
        "legend": {"orientation": "h", "y": -0.2},
    } | more


def axis(title: str, **more: Any) -> Json:
    return {"title": {"text": title}, "gridcolor": GRID, "zeroline": False, "automargin": True} | more


def ticks(low: float, high: float) -> Json:
    """A logarithmic axis with ticks as people write them: powers of two, and finer ones where there is room."""
    low, high = min(low, high / 1.2), high
    steps = [a * 2**k for k in range(-40, 41) for a in ((1, 1.25, 1.5, 1.75) if high / low < 8 else (1,))]
    found = [s for s in steps if low / 1.3 <= s <= high * 1.3]
    thin = found[:: max(1, len(found) // 12)]
    return {
        "type": "log",
        "tickvals": thin,
        "ticktext": [f"{v:,.4g}" for v in thin],
        "range": [math.log10(low / 1.08), math.log10(high * 1.08)],
    }
