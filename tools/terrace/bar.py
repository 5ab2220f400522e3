# SPDX-License-Identifier: MIT OR Apache-2.0
"""The progress bar; a module of its own because rich is not there on the very first start."""

import contextlib
from collections.abc import Iterator

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn


class _Bar:
    def __init__(self, progress: Progress, task: TaskID) -> None:
        self._progress = progress
        self._task = task

    def update(self, done: int, total: int, text: str = "") -> None:
        # Of "Building CXX object .../heap.cpp.o" only the end matters, and a line is short.
        text = text.rpartition("/")[2][-30:]
        self._progress.update(self._task, completed=done, total=total, text=text)

    def finish(self) -> None:
        total = self._progress.tasks[self._task].total
        self._progress.update(self._task, completed=total or 1, text="")


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
