# SPDX-License-Identifier: MIT OR Apache-2.0
"""The whole comparison as one still picture, for a document: time against memory."""

from __future__ import annotations

from pathlib import Path

from metrics import PEAK, TIME
from report import figure, save
from summary import OURS, Comparison


def draw(data: Comparison, path: Path) -> None:
    time, memory = data.comparable_means(TIME, "all"), data.comparable_means(PEAK, "all")
    fig, axes = figure(7, 4.2)
    for allocator in (a for a in time if a in memory):
        ours = allocator == OURS
        at = (time[allocator], memory[allocator])
        axes.scatter(*at, s=70, color="C3" if ours else "C0", zorder=3)
        axes.annotate(allocator, at, xytext=(7, 4), textcoords="offset points", fontweight="bold" if ours else None)
    axes.margins(0.15)
    axes.set(xlabel=f"time over {data.reference}'s, geometric mean of {len(data.sections['all'])} workloads",
             ylabel=f"peak memory over {data.reference}'s")
    save(fig, path)
