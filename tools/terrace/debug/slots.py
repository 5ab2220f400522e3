# SPDX-License-Identifier: MIT OR Apache-2.0
"""Where magazines are kept: slots of the core level, depots of processors and of nodes."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from terrace.debug.layout import Layout, Rows, filled
from terrace.debug.memory import Memory, UnreadableError
from terrace.debug.objects import ObjectClasses

_MOST_SLOTS = 1 << 20
_LEVELS = (("processor", "processors"), ("node", "nodes"))
_MOST_DEPOTS, _MOST_SHARDS = 4096, 64  # of a depot; of more, the memory is damaged


@dataclass(frozen=True)
class Slot:
    """A slot of the core level, of a core or of a thread; its fields by name."""

    name: str
    row: Any
    address: int
    is_core: bool = True


def slots(layout: Layout, memory: Memory) -> list[Slot]:
    """All there are."""
    size = layout.field("slot").size
    first = layout.of_heap(memory, "core.slots")
    rows = layout.rows(memory, "slot", first, layout.of_heap(memory, "core.count"))
    found = [Slot(f"slot {i}", row, first + i * size) for i, row in enumerate(rows)]
    at = layout.of_heap(memory, "core.of_threads")
    in_use = layout.constant("slot.in_use")
    while at != 0 and len(found) < _MOST_SLOTS:
        row = layout.rows(memory, "slot", at, 1)[0]
        owner = int(row["owner"])
        name = f"slot of thread {owner & ~in_use}" + ("" if owner & in_use else " (ended)")
        found.append(Slot(name, row, at, is_core=False))
        at = int(row["next"])
    return found


def words_of_objects(
    layout: Layout, memory: Memory, classes: ObjectClasses, all_slots: list[Slot]
) -> Iterator[tuple[Slot, int, int, Any]]:
    """Slot, number of the chunk's first class, address and fields of its words: of all chunks."""
    size = layout.field("words").size
    for chunk in classes.chunks:
        for i, slot in enumerate(all_slots):
            at = chunk.words + i * size if chunk.words else 0
            if not slot.is_core:
                table = int(slot.row["of_objects"])
                try:
                    at = memory.number(table + 8 * chunk.number) if table else 0
                except UnreadableError:
                    continue
            if at:
                first = chunk.number * classes.per_chunk
                yield slot, first, at, layout.rows(memory, "words", at, 1)[0]


@dataclass(frozen=True)
class DepotTable:
    """The depots of a level: of malloc's blocks, or of a chunk of object caches."""

    level: str
    first_home: int  # of key 0
    keys: int
    shards: int  # where they lie
    count: int
    per_depot: int

    @property
    def can_be(self) -> bool:
        few = self.count <= _MOST_DEPOTS and self.per_depot <= _MOST_SHARDS
        return self.shards != 0 and few


def depot_tables(layout: Layout, memory: Memory, classes: ObjectClasses) -> Iterator[DepotTable]:
    """All that there are."""
    keys = layout.field("shard.stacks").count
    for level, names in _LEVELS:
        fields = (f"{names}.shards", f"{names}.depots", f"{names}.per_depot")
        own = DepotTable(level, 0, keys, *(layout.of_heap(memory, field) for field in fields))
        if not own.can_be:
            continue
        yield own
        field = layout.field(f"{names}.objects")
        for chunk in classes.chunks:
            row = layout.read(
                memory, "depots", layout.heap + field.offset + chunk.number * field.size
            )
            first = classes.first + chunk.number * classes.per_chunk
            table = filled(DepotTable, row, level=level, first_home=first)
            if table.can_be and table.keys == classes.per_chunk:
                yield table


def shard_bytes(layout: Layout, keys: int) -> int:
    stacks = layout.field("shard.stacks")
    return stacks.offset + stacks.size * keys


def shards(
    layout: Layout, memory: Memory, classes: ObjectClasses
) -> Iterator[tuple[DepotTable, str, Rows]]:
    """Of all tables of depots; a shard's name and its stacks, a row each."""
    offset = layout.field("shard.stacks").offset
    for table in depot_tables(layout, memory, classes):
        size = shard_bytes(layout, table.keys)
        for depot, nth in itertools.product(range(table.count), range(table.per_depot)):
            at = table.shards + (depot * table.per_depot + nth) * size
            stacks = layout.rows(memory, "stack", at + offset, table.keys)
            yield table, f"{table.level} {depot}, shard {nth}", stacks
