# SPDX-License-Identifier: MIT OR Apache-2.0
"""The range of addresses in which all blocks lie, and what the library keeps of each granule."""

import numpy as np

from terrace.debug.layout import Ints, Layout, Rows, ints
from terrace.debug.memory import Memory


class Window:
    """The range of addresses in which all blocks lie, and its records."""

    def __init__(self, layout: Layout, memory: Memory) -> None:
        self.layout = layout
        self.shift = layout.constant("granule.shift")
        self.base = layout.of_heap(memory, "window.base")
        self.extent = layout.of_heap(memory, "window.extent")
        self.map = layout.of_heap(memory, "window.map")
        self.records = layout.of_heap(memory, "window.records")
        self.granules = self.extent >> self.shift
        self.homes = memory.sparse(self.map, self.granules)
        self.rows = layout.rows(memory, "record", self.records, self.granules)
        self.state = self.rows["state"]
        self.length = ints(self.rows, "granules")
        self.first = ints(self.rows, "first")

    def owned(self, name: str, rows: Ints) -> Rows:
        """The owner's part of some records."""
        at = self.layout.offset("record.owners")
        return self.rows[rows].view(self.layout.row(name, "record", at))

    def address(self, granule: int) -> int:
        return self.base + (granule << self.shift)

    def spans(self, state: str) -> Ints:
        """First granules of the spans in a state."""
        rows = np.flatnonzero(self.state == self.layout.constant(f"state.{state}"))
        # While the process runs a record may be half written.
        return rows[(self.length[rows] > 0) & (rows + self.length[rows] <= self.granules)]
