# SPDX-License-Identifier: MIT OR Apache-2.0
"""A use: a server as people run it, a load of fixed size, and what both need."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from interleave import Subject
from server import Service

PROGRAMS = Path(__file__).resolve().parent / "programs"


def _nothing(_folder: Path) -> None:
    pass


def _as_it_is(subject: Subject) -> Subject:
    return subject


@dataclass(frozen=True)
class Use:
    """The functions get a folder that is this run's alone; `load` gets how much of the work is to be done, 1 being all,
    and returns how many requests that was."""

    name: str
    title: str
    needs: tuple[str, ...]  # commands, or absolute paths
    service: Callable[[Path], Service]
    load: Callable[[Path, float], int]
    prepare: Callable[[Path], None] = _nothing
    subject: Callable[[Subject], Subject] = _as_it_is
    more: tuple[Subject, ...] = ()  # what its users do about memory without another allocator


def port_of(folder: Path) -> int:
    return int((folder / "port").read_text())
