# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the tool says for itself: on stderr, so that the output of the program stays clean."""

import contextlib
import os
import re
import sys
from collections.abc import Iterator
from typing import Protocol

quiet = False


def say(text: str, *, always: bool = False) -> None:
    """Prints one line, unless --quiet was given; `always` is for installations and errors."""
    if (always or not quiet) and sys.stderr is not None:
        with contextlib.suppress(OSError):
            print(f"terrace: {text}", file=sys.stderr, flush=True)


class Step(Protocol):
    """Work under way: `done` of `total` units."""

    def update(self, done: int, total: int, text: str = "") -> None: ...

    def finish(self) -> None:
        """All of it is done: not called for work that failed."""


class _Silent:
    def update(self, done: int, total: int, text: str = "") -> None:
        pass

    def finish(self) -> None:
        pass


class _Plain:
    """For logs: a line at each quarter."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._quarter = 0

    def update(self, done: int, total: int, text: str = "") -> None:  # noqa: ARG002
        quarter = 4 * done // max(total, 1)
        if quarter > self._quarter:
            self._quarter = quarter
            say(f"{self._title}: {25 * quarter} %")

    def finish(self) -> None:
        # apt-get's last word is 98 % or so.
        self.update(1, 1)


@contextlib.contextmanager
def progress(title: str, plain: bool = False) -> Iterator[Step]:
    """A progress bar on a terminal (if rich is there already); lines elsewhere, or if `plain`."""
    if quiet or sys.stderr is None:
        yield _Silent()
        return
    try:
        if plain or not sys.stderr.isatty() or os.environ.get("TERM", "dumb") == "dumb":
            raise ImportError
        from terrace.bar import bar
    except ImportError:
        say(title)
        yield _Plain(title)
        return
    with bar(title) as step:
        yield step


def count(number: int, singular: str, plural: str | None = None) -> str:
    """'1 process', '2 processes'."""
    many = plural or (singular + ("es" if re.search("(s|x|ch)$", singular) else "s"))
    return f"{number:,} {singular if number == 1 else many}"
