# SPDX-License-Identifier: MIT OR Apache-2.0
"""What commands look at: a live process or a core file, each with the same face."""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from terrace.debug.layout import Layout, UmemLayout
from terrace.debug.memory import Copy, Mapping, Memory, Thread, UnreadableError
from terrace.debug.sampled.perf_map import PerfMap
from terrace.errors import TerraceError

Range = tuple[int, int]
Select = Callable[[list[Mapping]], list[Range]]

# Words above the stack pointer in which a function of libc that Terrace calls has its return
# address. More would meet what functions have left there that have returned.
_RETURN_WITHIN = {"libc": 2, "[vdso]": 16}
_LIBC = re.compile(r"libc[.-].*")

OF_32_BITS = "is of a program of 32 bits: Terrace is for programs of 64"


@dataclass(frozen=True)
class Described:
    """Where an object's descriptors are, and the mapping of its beginning."""

    mapping: Mapping
    heap: int
    umem: int | None


@dataclass(frozen=True)
class Found:
    """A copy of Terrace that is in use."""

    layout: Layout
    umem: UmemLayout | None
    mapping: Mapping


@dataclass
class Capture:
    """Memory as it was in one moment."""

    memory: Copy
    mappings: list[Mapping]
    threads: list[Thread]
    copied: int = 0
    pause: float | None = None  # seconds that the process stood still; None: nobody was stopped
    inside: int = 0  # threads that were within Terrace
    notes: list[str] = field(default_factory=list)


class Target(ABC):
    """Nothing here writes to the process or calls into it."""

    title: str
    memory: Memory
    chosen: int = 0  # of its heaps
    root: str = ""  # where its files are, if it may see others than this process

    @abstractmethod
    def mappings(self) -> list[Mapping]: ...

    @abstractmethod
    def capture(self, select: Select, registers: bool = False) -> Capture:
        """A copy of what `select` chooses of the mappings. Threads of a process that waits have
        no registers, unless those are asked for, which takes stopping them."""

    def perf_map(self) -> PerfMap:
        """Names of code that was made at run time."""
        return PerfMap()

    @abstractmethod
    def descriptors(self) -> list[Described]:
        """Of all objects that have any, the likeliest first."""

    def why_none(self) -> str:
        """No Terrace is in it, and what one may do about that."""
        return (
            "has no Terrace in it: start the program with `terrace run`, "
            "LD_PRELOAD=libterrace.so, or linked with it"
        )

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

    @property
    def layout(self) -> Layout:
        """Of the copy of Terrace that is looked at."""
        return self.heaps[self.chosen].layout

    @property
    def umem(self) -> UmemLayout | None:
        """Of its object caches, if it has them."""
        return self.heaps[self.chosen].umem

    @property
    def library(self) -> str:
        """The object that it is part of."""
        return self.heaps[self.chosen].mapping.path

    @cached_property
    def heaps(self) -> list[Found]:
        """Of each copy that is in use, the fullest first: libumem.so has one beside malloc's."""
        found, unused = [], False
        for each in self.descriptors():
            try:
                layout = Layout(self.memory, each.heap)
                if layout.is_ready(self.memory):
                    umem = UmemLayout(self.memory, each.umem) if each.umem is not None else None
                    found.append(Found(layout, umem, each.mapping))
                    continue
            except UnreadableError:
                continue
            unused = True
        if not found and unused:
            raise TerraceError(f"{self.title} has Terrace, and has allocated nothing yet")
        if not found:
            raise TerraceError(f"{self.title} {self.why_none()}")
        # libumem.so gets its heap ready as it is loaded, also where nobody uses it.
        used = [f for f in found if f.layout.of_heap(self.memory, "window.committed")]
        used.sort(key=lambda f: -f.layout.of_heap(self.memory, "slabs.cut_bytes"))
        return used or found[:1]


def is_of_32_bits(beginning: bytes) -> bool:
    """Of an ELF file: a program, or a core file."""
    return beginning[:5] == b"\x7fELF\x01"


def likely_first(mappings: list[Mapping]) -> list[Mapping]:
    """The beginnings of mapped objects, those named like ours first, then the executable's."""
    seen: dict[str, Mapping] = {}
    for mapping in mappings:
        if mapping.is_file and mapping.offset == 0:
            seen.setdefault(mapping.path, mapping)
    names = ("terrace", "umem")
    return sorted(
        seen.values(), key=lambda m: not any(n in m.path.rpartition("/")[2] for n in names)
    )


def described(memory: Memory, mappings: list[Mapping]) -> Iterator[Described]:
    """By the data of objects, which is there also if their files are gone or are others by now."""
    data: dict[str, list[Mapping]] = {}
    for mapping in mappings:
        if mapping.permissions.startswith("rw"):
            data.setdefault(mapping.path, []).append(mapping)
    for beginning in likely_first(mappings):
        for m in data.get(beginning.path, []):
            heap = Layout.place_in(memory, m.start, m.end)
            if heap is not None:
                yield Described(beginning, heap, UmemLayout.place_in(memory, m.start, m.end))
