# SPDX-License-Identifier: MIT OR Apache-2.0
"""What each slot of the core level keeps: a line for each, a column for each size class."""

import numpy as np

from terrace.debug.classes import Classes
from terrace.debug.layout import Ints, Layout, ints
from terrace.debug.magazines import Words2Magazines
from terrace.debug.memory import Memory
from terrace.debug.slots import Slot, slots, words_of_objects
from terrace.report.cells import human_bytes
from terrace.report.text import table

_MOST_COLUMNS = 16  # of classes; those that hold most


def _kept_bytes(
    layout: Layout, memory: Memory, classes: Classes, found: list[Slot]
) -> tuple[Ints, Ints]:
    """A row for each slot: bytes by size class, and bytes of all object caches."""
    words = Words2Magazines(layout, memory, classes)
    homes = layout.constant("home.count")
    by_class = np.zeros((len(found), classes.count), np.int64)
    for i, slot in enumerate(found):
        held = words.held(slot.row, homes)
        of_home = classes.class_of_home[:homes]
        good = of_home < classes.count
        np.add.at(by_class[i], of_home[good], (held * classes.size_of_home[:homes])[good])
    of_objects = np.zeros(len(found), np.int64)
    rows = {slot.name: i for i, slot in enumerate(found)}
    strides = ints(classes.objects.shapes, "stride")
    for slot, first, _, row in words_of_objects(layout, memory, classes.objects, found):
        held = words.held(row, classes.objects.per_chunk)
        of_objects[rows[slot.name]] += int((held * strides[first : first + len(held)]).sum())
    return by_class, of_objects


def lines(layout: Layout, memory: Memory) -> list[str]:
    """The cap is the slot's part of the core level's budget."""
    classes = Classes(layout, memory)
    found = slots(layout, memory)
    if not found:
        return []
    by_class, of_objects = _kept_bytes(layout, memory, classes, found)
    cap = layout.of_heap(memory, "core.budget") / len(found)
    total = by_class.sum(axis=1) + of_objects
    sums = by_class.sum(axis=0)
    most = np.argsort(-sums, kind="stable")[:_MOST_COLUMNS]
    shown = sorted(c for c in most.tolist() if sums[c])
    sizes = (f">{classes.owners[c].name}" for c in shown)
    head = ("slot", ">kept", ">% of cap", *sizes, ">other sizes", ">caches")

    def share(part: int, whole: int) -> str:
        return f"{100 * part / whole:.0f}" if whole else "0"

    rows = []
    for i, slot in enumerate(found):
        kept = int(total[i])
        parts = [int(by_class[i, c]) for c in shown]
        rest = int(by_class[i].sum()) - sum(parts)
        percent = f"{100 * kept / cap:.0f}" if cap else "-"
        cells = [share(part, kept) for part in (*parts, rest, int(of_objects[i]))]
        rows.append([slot.name, human_bytes(kept), percent, *cells])
    return [
        *table(head, rows),
        f"of each slot, what it keeps in percent of {human_bytes(round(cap))}, its part of the "
        "budget; of each size, its percentage of what the slot keeps",
    ]
