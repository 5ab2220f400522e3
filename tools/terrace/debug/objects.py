# SPDX-License-Identifier: MIT OR Apache-2.0
"""Classes of object caches: numbers behind those of the size classes, in tables of a chunk each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from terrace.debug.layout import Layout
from terrace.debug.memory import Bytes, Memory, UnreadableError

Columns = dict[str, npt.NDArray[np.int64]]


@dataclass(frozen=True)
class Chunk:
    """Where it lies on each level; 0: it has no such part."""

    number: int
    classes: int
    words: int  # of slot 0, the other slots' behind; where slots are threads', theirs say
    slabs: int


def column(raw: Bytes, layout: Layout, name: str, base: int = 0) -> npt.NDArray[Any]:
    """A field of rows of bytes: of several elements a table."""
    f = layout.field(name)
    at = base + f.offset
    part = np.ascontiguousarray(raw[:, at : at + f.size * f.count]).view(f"<u{f.size}")
    return part if f.count > 1 else part[:, 0]


def chunks(layout: Layout, memory: Memory) -> list[Chunk]:
    """Those that every level has opened."""
    table = layout.address("object_classes")
    most = layout.field("objects.classes").count
    count = min(layout.value(memory, table, "objects.chunks"), most)

    def pointers(at: int) -> list[int]:
        found: list[int] = memory.array(at, count, "<u8").tolist()
        return found

    parts = zip(
        pointers(table + layout.offset("objects.classes")),
        pointers(layout.heap + layout.offset("core.objects")),
        pointers(layout.heap + layout.offset("slabs.objects")),
        strict=True,
    )
    return [Chunk(i, *part) for i, part in enumerate(parts)]


class ObjectClasses:
    """All there are, in order of their numbers; `home` is the first one's."""

    def __init__(self, layout: Layout, memory: Memory) -> None:
        self.first = layout.constant("object.first")
        self.per_chunk = layout.constant("object.per_chunk")
        self.chunks = chunks(layout, memory)
        self.count = self.per_chunk * len(self.chunks)
        free_map = layout.field("slab.free_map")
        self._most_blocks = 8 * free_map.size * free_map.count
        self._granule = 1 << layout.constant("granule.shift")
        size = layout.field("object").size
        raw = [memory.sparse(c.classes, self.per_chunk * size) for c in self.chunks]
        rows = np.concatenate([np.zeros(0, np.uint8), *raw]).reshape(-1, size)
        at = layout.offset("object.shape")
        names = ("stride", "per_group", "group_bytes", "blocks", "granules")
        self.shapes: Columns = {
            name: column(rows, layout, f"shape.{name}", at).astype(np.int64) for name in names
        }
        self.columns: Columns = {
            name: column(rows, layout, f"object.{name}").astype(np.int64)
            for name in ("open", "exists", "owner", "handed_out", "failed", "refills")
        }

    def is_sound(self, number: int) -> bool:
        """Whether it is a class, and of a shape that can be."""
        shape = {name: int(column[number]) for name, column in self.shapes.items()}
        return bool(
            self.columns["open"][number]
            and min(shape.values()) > 0
            and shape["blocks"] <= self._most_blocks
            and shape["blocks"] * shape["stride"] <= shape["granules"] * self._granule
        )

    def slab_counters(self, layout: Layout, memory: Memory) -> Columns:
        """By class."""
        size = layout.field("slab_class").size
        raw = [memory.sparse(c.slabs, self.per_chunk * size) for c in self.chunks]
        rows = np.concatenate([np.zeros(0, np.uint8), *raw]).reshape(-1, size)
        names = ("cut", "returned", "made", "released")
        return {n: column(rows, layout, f"slab_class.{n}").astype(np.int64) for n in names}

    def leaving(self, layout: Layout, memory: Memory) -> Bytes:
        """Of the slabs of all classes, what `leaving` of heap.py looks at: a row each."""
        size = layout.field("slab_class").size
        raw = [memory.sparse(c.slabs, self.per_chunk * size) for c in self.chunks]
        return np.concatenate([np.zeros(0, np.uint8), *raw]).reshape(-1, size)


def words_of_slots(
    layout: Layout, memory: Memory, classes: ObjectClasses, slots: list[tuple[str, int, bool]]
) -> list[tuple[str, int, Bytes]]:
    """Slot, number of its first class, and its words, for all chunks.

    `slots` are name, address of the table of a thread's own or 0, and whether it is a core's.
    """
    size = layout.field("words").size
    cores = [name for name, _, is_core in slots if is_core]
    found = []
    for chunk in classes.chunks:
        first = chunk.number * classes.per_chunk
        if chunk.words:
            raw = memory.sparse(chunk.words, size * len(cores)).reshape(-1, size)
            found += [(name, first, raw[i]) for i, name in enumerate(cores)]
        for name, table, is_core in slots:
            if is_core or table == 0:
                continue
            try:
                at = memory.number(table + 8 * chunk.number)
            except UnreadableError:
                continue
            if at:
                found.append((name, first, memory.sparse(at, size)))
    return found
