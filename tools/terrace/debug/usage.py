# SPDX-License-Identifier: MIT OR Apache-2.0
"""What each class and each level holds now, by the counters: read as the process runs.

The same sums as in src/introspect/snapshot.cpp: what left the slabs, and is neither back nor held
by a level, is in use. While threads allocate, each number was true at some recent moment.
"""

from dataclasses import dataclass

import numpy as np

from terrace.debug.classes import Classes, Owner
from terrace.debug.layout import Ints, Layout, Rows, ints
from terrace.debug.magazines import Words2Magazines
from terrace.debug.memory import Memory
from terrace.debug.slots import shards, slots


@dataclass(frozen=True)
class Usage:
    """Of one owner; in blocks, but for `memory`."""

    owner: Owner
    in_use: int
    in_slots: int
    in_depots: int
    total: int
    slabs: int
    memory: int
    allocations: int
    failures: int

    @property
    def live_bytes(self) -> int:
        return self.in_use * self.owner.size


@dataclass
class LevelUsage:
    name: str
    parts: int = 0  # slots, shards, slabs, blocks: what it consists of
    what: str = ""
    magazines: int = 0
    blocks: int = 0
    bytes: int = 0


@dataclass
class LargeUsage:
    blocks: int = 0
    bytes: int = 0
    kept: int = 0
    kept_bytes: int = 0
    allocations: int = 0


@dataclass
class Snapshot:
    """Everything that `umastat`, `top` and `export` show."""

    classes: list[Usage]
    levels: list[LevelUsage]
    large: LargeUsage
    dirty: int
    committed: int
    purged: int
    rung: str

    @property
    def live_bytes(self) -> int:
        """Objects of caches that have no class are large blocks, too."""
        small = sum(u.live_bytes for u in self.classes if u.owner.size_class > 0)
        return small + self.large.bytes


class Counters:
    """By home class or by size class: what is added up before anything follows from it."""

    def __init__(self, homes: int, classes: int) -> None:
        def zeros(n: int) -> Ints:
            return np.zeros(n, np.int64)

        self.in_slots, self.in_depots = zeros(homes), zeros(homes)
        self.popped = zeros(homes)
        self.refills = zeros(classes)
        self.core = LevelUsage("core", what="slots")
        self.depots: dict[str, LevelUsage] = {}


class UsageReader:
    """Keeps what never changes, for `top`."""

    def __init__(self, layout: Layout, memory: Memory) -> None:
        self._layout = layout
        self._memory = memory
        self.classes = Classes(layout, memory)
        homes = self.classes.homes
        self._class_of = np.array(self.classes.of_home[:homes], np.int64)
        sizes = np.zeros(max(self.classes.count, int(self._class_of.max()) + 1), np.int64)
        sizes[: self.classes.count] = self.classes.sizes
        self._size_of = sizes[self._class_of]
        number = layout.of_heap(memory, "core.rung")
        names = ("mm_cid", "cpu_id", "getcpu", "thread")
        self._rung = next(n for n in names if layout.constant(f"rung.{n}") == number)

    def read(self) -> Snapshot:
        layout, memory = self._layout, self._memory
        counters = Counters(self.classes.homes, layout.field("slot.refills").count)
        large = self._slots(counters)
        self._depots(counters)
        levels = [counters.core, *counters.depots.values()]
        classes, slab_level = self._classes(counters)
        levels.append(slab_level)
        return Snapshot(
            classes, levels, large, layout.of_heap(memory, "spans.dirty_bytes"),
            layout.of_heap(memory, "window.committed"),
            layout.of_heap(memory, "spans.purged_bytes"), self._rung,
        )  # fmt: skip

    def _slots(self, into: Counters) -> LargeUsage:
        layout = self._layout
        words = Words2Magazines(layout, self._memory, self.classes)
        homes = self.classes.homes
        large = LargeUsage()
        for slot in slots(layout, self._memory):
            into.core.parts += 1
            into.popped += slot.row["popped"].astype(np.int64)
            into.refills += slot.row["refills"].astype(np.int64)
            for name in ("words", "previous"):
                held = slot.row[name][:homes]
                for home in np.flatnonzero(held).tolist():
                    magazine = words.find(int(held[home]), "", home)
                    if magazine is not None:
                        into.core.magazines += 1
                        into.in_slots[home] += magazine.count
            self._kept(slot.row["large"].tolist(), large)
            large.allocations += int(slot.row["large_reused"])
        # With the heap profiler a slot's counts begin below 0.
        at = layout.address("profile") + layout.offset("profile.armed")
        into.popped += self._memory.array(at, homes, np.int64)
        into.core.blocks = int(into.in_slots.sum())
        into.core.bytes = int((into.in_slots * self._size_of).sum())
        allocated = layout.of_heap(self._memory, "large.allocated")
        freed = layout.of_heap(self._memory, "large.freed")
        live = layout.of_heap(self._memory, "large.live_bytes")
        large.allocations += allocated
        large.blocks = max(allocated - freed - large.kept, 0)
        large.bytes = max(live - large.kept_bytes, 0)
        return large

    def _kept(self, words: list[int], large: LargeUsage) -> None:
        layout, memory = self._layout, self._memory
        base = layout.of_heap(memory, "window.base")
        extent = layout.of_heap(memory, "window.extent")
        for word in words:
            offset = (word >> layout.constant("large_word.address_shift")) - base
            if not 0 <= offset < extent:
                continue
            record = layout.of_heap(memory, "window.records")
            record += (offset >> layout.constant("granule.shift")) * layout.field("record").size
            at = layout.offset("record.owners") + layout.offset("large_record.requested")
            large.kept += 1
            large.kept_bytes += memory.number(record + at)

    def _depots(self, into: Counters) -> None:
        layout = self._layout
        homes = self.classes.homes
        for table, _, stacks in shards(layout, self._memory, self.classes.objects):
            name = table.level
            level = into.depots.setdefault(name, LevelUsage(name, what="shards"))
            if table.first_home:
                continue  # umem/usage.py
            level.parts += 1
            held = np.maximum(ints(stacks, "blocks_in") - ints(stacks, "blocks_out"), 0)[:homes]
            into.in_depots += held
            level.magazines += int(stacks["count"].sum())
            level.blocks += int(held.sum())
            level.bytes += int((held * self._size_of).sum())

    def _of_heap(self, row: str, name: str) -> Rows:
        """A table that is part of the heap itself."""
        table = self._layout.field(name)
        at = self._layout.heap + table.offset
        return self._layout.rows(self._memory, row, at, table.count)

    def _by_class(self, by_home: Ints) -> Ints:
        sums = np.bincount(self._class_of, weights=by_home, minlength=self.classes.count)
        whole: Ints = sums[: self.classes.count].astype(np.int64)
        return whole

    def _classes(self, counters: Counters) -> tuple[list[Usage], LevelUsage]:
        slabs = self._of_heap("slab_class", "slabs.classes")[: self.classes.homes]
        made = np.maximum(ints(slabs, "made") - ints(slabs, "released"), 0)
        shapes = self.classes.shapes[: self.classes.homes]
        granule = 1 << self._layout.constant("granule.shift")
        places = np.array([s.blocks if s else 0 for s in shapes], np.int64) * made
        memory = np.array([s.granules * granule if s else 0 for s in shapes], np.int64) * made
        cut = self._by_class(ints(slabs, "cut") - ints(slabs, "returned"))
        out = np.maximum(cut, 0)
        in_slots, in_depots = self._by_class(counters.in_slots), self._by_class(counters.in_depots)
        in_use = np.maximum(out - in_slots - in_depots, 0)
        transfers = self._of_heap("transfer", "transfers")
        failures, handed = ints(transfers, "failed"), ints(transfers, "handed_out")
        count = self.classes.count
        popped = self._by_class(counters.popped)
        allocations = popped + (counters.refills - failures + handed)[:count]
        columns = (
            in_use, in_slots, in_depots, self._by_class(places), self._by_class(made),
            self._by_class(memory), allocations, failures[:count],
        )  # fmt: skip
        rows = np.stack(columns, axis=1).tolist()
        usages = [Usage(self.classes.owners[c], *rows[c]) for c in range(1, count) if any(rows[c])]
        free = self._by_class(places) - out
        sizes = np.array(self.classes.sizes, np.int64)
        level = LevelUsage(
            "slabs", int(made.sum()), "slabs", 0, int(free.sum()), int((free * sizes).sum())
        )
        return usages, level
