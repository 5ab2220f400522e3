# SPDX-License-Identifier: MIT OR Apache-2.0
"""A use: a server as people run it, a load of fixed size, and what both need."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from interleave import Subject
from server import Service
from workload import Failed

PROGRAMS = Path(__file__).resolve().parent / "programs"


def _nothing(_folder: Path) -> None:
    pass


def _as_it_is(subject: Subject) -> Subject:
    return subject


@dataclass(frozen=True)
class Done:
    """A load that has been done."""

    requests: int
    p99: float  # milliseconds that 99 of 100 requests, transactions, tasks or calls took at most

    def __post_init__(self) -> None:
        if not self.p99 > 0:
            raise Failed(f"the load says a p99 of {self.p99} ms")


@dataclass(frozen=True)
class Use:
    """The functions get a folder that is this run's alone; `load` gets how much of the work is to be done, 1 being all."""

    name: str
    title: str
    needs: tuple[str, ...]  # commands, or absolute paths
    service: Callable[[Path], Service]
    load: Callable[[Path, float], Done]
    prepare: Callable[[Path], None] = _nothing
    subject: Callable[[Subject], Subject] = _as_it_is
    settings: dict[str, dict[str, str]] = field(default_factory=dict)  # what its users do about memory, and the environment of it


def number(pattern: str, said: str) -> float:
    """The group in what a program says."""
    found = re.search(pattern, said, re.M)
    if found is None:
        raise Failed(f"no {pattern} in what it says: {said.strip()[-200:]}")
    return float(found[1])


def port_of(folder: Path) -> int:
    return int((folder / "port").read_text())
