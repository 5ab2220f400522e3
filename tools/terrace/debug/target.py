# SPDX-License-Identifier: MIT OR Apache-2.0
"""What commands look at: a live process or a core file, each with the same face."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import BinaryIO

from terrace.debug.layout import Layout
from terrace.debug.memory import Copy, Mapping, Memory, Thread, UnreadableError
from terrace.errors import TerraceError

Range = tuple[int, int]


@dataclass
class Capture:
    """Memory as it was in one moment."""

    memory: Copy
    mappings: list[Mapping]
    threads: list[Thread]
    copied: int = 0
    pause: float | None = None  # seconds that the process stood still; None: it did not run
    copying: float = 0.0
    inside: int = 0  # threads that were within Terrace
    notes: list[str] = field(default_factory=list)


class Target(ABC):
    """Nothing here writes to the process or calls into it."""

    title: str
    memory: Memory

    @abstractmethod
    def mappings(self) -> list[Mapping]: ...

    @abstractmethod
    def capture(self, select: Callable[[list[Mapping]], list[Range]]) -> Capture:
        """A copy of what `select` chooses of the mappings."""

    @abstractmethod
    def descriptors(self) -> list[tuple[Mapping, int]]:
        """Where descriptors are: the mapping of the object's beginning, and the address."""

    def within(self, mappings: list[Mapping], threads: list[Thread], program: str) -> int:
        """How many threads are in Terrace's code; 0 where it can not be told from the program's."""
        code = [m for m in mappings if m.path == self.library and "x" in m.permissions]
        if self.library == program:
            return 0
        return sum(any(m.start <= t.pc < m.end for m in code) for t in threads)

    @cached_property
    def layout(self) -> Layout:
        """Of the copy of Terrace that is in use."""
        return self._found[0]

    @cached_property
    def library(self) -> str:
        """The object that it is part of."""
        return self._found[1].path

    @cached_property
    def _found(self) -> tuple[Layout, Mapping]:
        unused = False
        for mapping, address in self.descriptors():
            try:
                layout = Layout(self.memory, address)
                if layout.is_ready(self.memory):
                    return layout, mapping
            except UnreadableError:
                continue
            unused = True
        if unused:
            raise TerraceError(f"{self.title} has Terrace, and has allocated nothing yet")
        raise TerraceError(
            f"{self.title} has no Terrace in it: start the program with `terrace run`, "
            "LD_PRELOAD=libterrace.so, or linked with it"
        )


def likely_first(mappings: list[Mapping]) -> list[Mapping]:
    """The beginnings of mapped objects, those named like Terrace first, then the executable's."""
    seen: dict[str, Mapping] = {}
    for mapping in mappings:
        if mapping.is_file and mapping.offset == 0:
            seen.setdefault(mapping.path, mapping)
    return sorted(seen.values(), key=lambda m: "terrace" not in m.path.rpartition("/")[2])


def offset_in(file: BinaryIO | None) -> int | None:
    """See elf.descriptor_offset(); None also without a file."""
    from terrace.debug.elf import descriptor_offset

    return None if file is None else descriptor_offset(file)
