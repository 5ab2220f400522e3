# SPDX-License-Identifier: MIT OR Apache-2.0
"""Before an allocator is measured: does it serve at all, and which version and mode is it? Asked of a running program."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from catalogue import BENCH, load
from interleave import Subject
from workload import Failed


@dataclass(frozen=True)
class Said:
    version: str
    mode: str


class IdleError(Exception):
    """An allocator does not serve the program it is preloaded into: its numbers would be another's."""


def subjects(library: Path, peers: Path, names: Sequence[str] | None, also: Sequence[str]) -> list[Subject]:
    allocators = load(BENCH / "peers" / "allocators.py", "allocators")
    found: list[Subject] = allocators.subjects(library, peers, names)
    return found + [allocators.with_settings(allocators.subjects(library, peers), words) for words in also]


def _modules() -> None:
    folder = str(BENCH / "peers")
    if folder not in sys.path:
        sys.path.append(folder)


def ask(build: Path, peers: Path, subject: Subject) -> Said:
    """Raises IdleError."""
    _modules()
    import building
    import probing

    try:
        words = probing.ask(build, subject)
    except Failed as failed:
        raise IdleError(f"{subject.name}: {failed}") from failed
    library = subject.environment.get("LD_PRELOAD")
    if wrong := probing.complaints(words, Path(library) if library else None):
        raise IdleError(f"{subject.name} does not serve: {'; '.join(wrong)}")
    built = building.read_built(peers, subject.name)
    version = words.version or (built.version if built else "" if library else words.libc)
    return Said(probing.readable_version(version), words.mode or "")
