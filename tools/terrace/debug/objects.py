# SPDX-License-Identifier: MIT OR Apache-2.0
"""Classes of object caches: numbers behind those of the size classes, in tables of a chunk each."""

from dataclasses import dataclass

import numpy as np

from terrace.debug.layout import Layout, Rows
from terrace.debug.memory import Memory


@dataclass(frozen=True)
class Chunk:
    """Where it lies on each level; 0: it has no such part."""

    number: int
    classes: int
    words: int  # of slot 0, the other slots' behind; where slots are threads', theirs say
    slabs: int


def chunks(layout: Layout, memory: Memory) -> list[Chunk]:
    """Those that every level has opened."""
    table = layout.address("object_classes")
    most = layout.field("objects.classes").count
    count = min(layout.value(memory, table, "objects.chunks"), most)
    places = (
        table + layout.offset("objects.classes"),
        layout.heap + layout.offset("core.objects"),
        layout.heap + layout.offset("slabs.objects"),
    )
    parts = zip(*(memory.array(at, count, "<u8").tolist() for at in places), strict=True)
    return [Chunk(i, *part) for i, part in enumerate(parts)]


class ObjectClasses:
    """All there are, in order of their numbers; `first` is the first one's home class."""

    def __init__(self, layout: Layout, memory: Memory) -> None:
        self._layout, self._memory = layout, memory
        self.first = layout.constant("object.first")
        self.per_chunk = layout.constant("object.per_chunk")
        self.chunks = chunks(layout, memory)
        self.count = self.per_chunk * len(self.chunks)
        free_map = layout.field("slab.free_map")
        self._most_blocks = 8 * free_map.size * free_map.count
        self._granule = 1 << layout.constant("granule.shift")
        self.rows = self._all("object", [c.classes for c in self.chunks])
        self.shapes = self.rows.view(layout.row("shape", "object", layout.offset("object.shape")))

    def _all(self, name: str, places: list[int]) -> Rows:
        row = self._layout.row(name)
        # As bytes: of structures numpy would make others without what is not described.
        parts = [self._memory.sparse(at, self.per_chunk * row.itemsize) for at in places]
        return np.concatenate([np.zeros(0, np.uint8), *parts]).view(row)

    def is_sound(self, number: int) -> bool:
        """Whether it is a class, and of a shape that can be."""
        shape = {name: int(self.shapes[name][number]) for name in self.shapes.dtype.names or ()}
        return bool(self.rows["open"][number]) and self.can_be(shape)

    def can_be(self, shape: dict[str, int]) -> bool:
        """Tables by block and by granule would be of any size where memory is damaged."""
        return (
            min(shape.values()) > 0
            and shape["blocks"] <= self._most_blocks
            and shape["blocks"] * shape["stride"] <= shape["granules"] * self._granule
        )

    def slabs(self) -> Rows:
        """What the slab level has of each class."""
        return self._all("slab_class", [c.slabs for c in self.chunks])
