# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the driver knows of a program that uses libumem."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from steps import Library

Values = dict[str, float]  # rate and rss: operations a second and bytes; what else the program counts
Results = Mapping[str, str]  # test -> "passed", "failed" or "skipped"

PLAIN, UMEM = "plain", "umem"  # builds: as the program comes, and on libumem
SILENT = {"UMEM_DEBUG": "", "UMEM_LOGGING": ""}  # overrides what a program asks for itself


@dataclass(frozen=True)
class Setting:
    """One way to run a program."""

    name: str
    build: str
    environment: dict[str, str] = field(default_factory=dict)


WITHOUT = Setting("malloc", PLAIN)
WITH = Setting("libumem", UMEM, SILENT)
DEBUGGED = Setting("libumem, UMEM_DEBUG=default", UMEM, {"UMEM_DEBUG": "default,verbose", "UMEM_LOGGING": ""})


class Program(Protocol):
    name: str
    gib: float  # of disk
    minutes: int  # to build and test it, on two cores
    counts: str  # what a rate counts
    settings: Sequence[Setting]

    def needs(self) -> Sequence[str]:
        """Commands without which it can not be built or loaded."""
        ...

    def build(self, library: Library) -> None:
        """Both builds, as far as they are not there."""
        ...

    def check(self, library: Library, setting: Setting) -> Results:
        """Its own tests."""
        ...

    def check_again(self, library: Library, setting: Setting, tests: Sequence[str]) -> Results:
        """Some of them, one by one. Nothing: they need not run again, since they do not fail by chance."""
        ...

    def measure(self, library: Library, setting: Setting) -> Values:
        """One run under load. Failed: it ended badly, or gave wrong answers."""
        ...


def anonymous_bytes(pid: int) -> float:
    """Memory of a process that is no file's and nobody else's: RssAnon."""
    status = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"^RssAnon:\s+(\d+) kB", status, re.M)
    return float(found[1]) * 1024 if found else 0.0


def libumem_in(pid: int) -> bool:
    return "/libumem.so" in Path(f"/proc/{pid}/maps").read_text(errors="replace")
