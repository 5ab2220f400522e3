# SPDX-License-Identifier: MIT OR Apache-2.0
"""Arenas of vmem, and the segments that each is cut into."""

from collections.abc import Iterator
from dataclasses import dataclass

from terrace.debug.layout import UmemLayout, filled, text
from terrace.debug.memory import Memory

_MOST_ARENAS = 1 << 16  # of more, a list is damaged
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
        first = umem.value(self._memory, umem.address("arenas"), "arenas.first")
        for at, row in umem.linked(self._memory, "arena", first, "next", _MOST_ARENAS):
            yield filled(Arena, row, address=at, name=text(row["name"]))

    def segments(self, arena: Arena) -> Iterator[Segment]:
        """In the order of addresses; a span's marker, then what it is cut into."""
        anchor = arena.address + self._umem.offset("arena.anchor")
        for at, row in self._umem.linked(self._memory, "segment", anchor, "after"):
            if at == anchor:
                continue
            if row["kind"] not in self._kinds:
                return
            kind = self._kinds[row["kind"]]
            yield filled(Segment, row, address=at, kind=kind)


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
