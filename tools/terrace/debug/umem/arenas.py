# SPDX-License-Identifier: MIT OR Apache-2.0
"""Arenas of vmem, and the segments that each is cut into."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from terrace.debug.layout import UmemLayout
from terrace.debug.memory import Memory, UnreadableError

_MOST_ARENAS = 1 << 16  # of more, or of more segments, a list is damaged
_MOST_SEGMENTS = 1 << 26
KINDS = ("span", "free", "allocated", "cached")


@dataclass(frozen=True)
class Arena:
    """Bytes, but for the last three; cached bytes are in use."""

    address: int
    name: str
    quantum: int
    source: int
    in_use: int
    cached: int
    total: int
    imported: int
    allocations: int
    frees: int
    failures: int


@dataclass(frozen=True)
class Segment:
    """`kind` is one of KINDS. Pieces have the bytes that were asked for."""

    address: int
    start: int
    size: int
    kind: str
    asked: int
    imported: bool

    @property
    def end(self) -> int:
        return self.start + self.size


class ArenaReader:
    """Reads all of the list, or one's segments."""

    def __init__(self, umem: UmemLayout, memory: Memory) -> None:
        self._umem = umem
        self._memory = memory
        self._kinds = {umem.constant(f"segment_kind.{kind}"): kind for kind in KINDS}

    def __iter__(self) -> Iterator[Arena]:
        """In the order of addresses; as far as the list can be followed."""
        umem = self._umem
        at = umem.value(self._memory, umem.address("arenas"), "arenas.first")
        seen: set[int] = set()
        while at != 0 and at not in seen and len(seen) < _MOST_ARENAS:
            seen.add(at)
            try:
                raw = self._memory.read(at, umem.field("arena").size)
            except UnreadableError:
                return
            names = ("quantum", "source", "in_use", "cached", "total", "imported", "allocations")
            fields = {name: umem.within(raw, f"arena.{name}") for name in (*names, "frees")}
            failures = umem.within(raw, "arena.failures")
            yield Arena(at, umem.text(raw, "arena.name"), **fields, failures=failures)
            at = umem.within(raw, "arena.next")

    def segments(self, arena: Arena) -> Iterator[Segment]:
        """In the order of addresses; a span's marker, then what it is cut into."""
        umem = self._umem
        size = umem.field("segment").size
        anchor = arena.address + umem.offset("arena.anchor")
        at = self._after(anchor)
        seen = {anchor, 0}
        while at not in seen and len(seen) < _MOST_SEGMENTS:
            seen.add(at)
            try:
                raw = self._memory.read(at, size)
            except UnreadableError:
                return
            names = ("start", "size", "asked", "imported", "kind")
            start, length, asked, imported, kind = (
                umem.within(raw, f"segment.{name}") for name in names
            )
            if kind not in self._kinds:
                return
            yield Segment(at, start, length, self._kinds[kind], asked, imported != 0)
            at = umem.within(raw, "segment.after")

    def _after(self, at: int) -> int:
        try:
            return self._umem.value(self._memory, at, "segment.after")
        except UnreadableError:
            return 0


def tree(arenas: list[Arena]) -> list[tuple[int, Arena]]:
    """Each behind its source, with its depth; in the order of a walk from the top."""
    children: dict[int, list[Arena]] = {}
    known = {a.address for a in arenas}
    for a in arenas:
        children.setdefault(a.source if a.source in known else 0, []).append(a)
    found: list[tuple[int, Arena]] = []
    seen: set[int] = set()
    waiting = [(0, a) for a in reversed(children.get(0, []))]
    while waiting:
        depth, arena = waiting.pop()
        if arena.address in seen:
            continue
        seen.add(arena.address)
        found.append((depth, arena))
        waiting += [(depth + 1, a) for a in reversed(children.get(arena.address, []))]
    return found + [(0, a) for a in arenas if a.address not in seen]  # sources of each other
