# SPDX-License-Identifier: MIT OR Apache-2.0
"""What commands look at: a live process or a core file, each with the same face."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import BinaryIO

from terrace.debug.layout import Layout
from terrace.debug.memory import Copy, Mapping, Memory, Thread, UnreadableError
from terrace.errors import TerraceError

Range = tuple[int, int]

# Words above the stack pointer in which a function of libc that Terrace calls has its return
# address. More would meet what functions have left there that have returned.
_RETURN_WITHIN = {"libc": 2, "[vdso]": 16}
_LIBC = re.compile(r"libc[.-].*")


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

    def inside(self, mappings: list[Mapping], threads: list[Thread], program: str) -> list[Thread]:
        """Threads in Terrace's code; none where it can not be told from the program's."""
        if self.library == program:
            return []
        code = [m for m in mappings if m.path == self.library and "x" in m.permissions]

        def is_ours(address: int) -> bool:
            return any(m.start <= address < m.end for m in code)

        def has_called(thread: Thread) -> bool:
            """Terrace called what it is in now: memcpy, or the clock."""
            where = next((m.path for m in mappings if m.start <= thread.pc < m.end), "")
            words = _RETURN_WITHIN.get(_LIBC.sub("libc", where.rpartition("/")[2]), 0)
            stack = self.memory.sparse(thread.sp // 8 * 8, 8 * words).view("<u8")
            return any(is_ours(address) for address in stack.tolist())

        return [t for t in threads if is_ours(t.pc) or has_called(t)]

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
