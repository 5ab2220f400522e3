# SPDX-License-Identifier: MIT OR Apache-2.0
"""The progress bar; a module of its own because rich is not there on the very first start."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn


class _Bar:
    def __init__(self, progress: Progress, task: TaskID) -> None:
        self._progress = progress
        self._task = task

    def update(self, done: int, total: int, text: str = "") -> None:
        self._progress.update(self._task, completed=done, total=total, text=text[-60:])


@contextlib.contextmanager
def bar(title: str) -> Iterator[_Bar]:
    """A bar with elapsed time and what is being worked on; its last state stays on the screen."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:.0f}/{task.total:.0f}"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[text]}", style="dim"),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task(f"terrace: {title}", total=1, text="")
        step = _Bar(progress, task)
        yield step
        progress.update(task, text="")
