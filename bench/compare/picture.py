# SPDX-License-Identifier: MIT OR Apache-2.0
"""The whole comparison as one still picture, for a document: time against memory."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from metrics import PEAK, TIME
from report import figures, save
from summary import OURS, Comparison


def _panel(axes: Any, data: Comparison) -> None:
    time, memory = data.comparable_means(TIME, "all"), data.comparable_means(PEAK, "all")
    for allocator in (a for a in time if a in memory):
        ours = allocator == OURS
        at = (time[allocator], memory[allocator])
        axes.scatter(*at, s=70, color="C3" if ours else "C0", zorder=3)
        axes.annotate(allocator, at, xytext=(7, 4), textcoords="offset points", fontweight="bold" if ours else None)
    axes.margins(0.15)
    axes.set(xlabel=f"time over {data.reference}'s, geometric mean of {len(data.sections.get('all', []))} workloads",
             ylabel=f"peak memory over {data.reference}'s")


def draw(named: Sequence[tuple[str, Comparison]], path: Path) -> None:
    """A panel for each, all with the same axes."""
    width = 5.5 if len(named) > 1 else 7
    fig, panels = figures(1, len(named), width, 4.2)
    for axes, (name, data) in zip(panels, named, strict=True):
        _panel(axes, data)
        axes.set_title(name, fontsize="medium")
    save(fig, path)
