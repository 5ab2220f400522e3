# SPDX-License-Identifier: MIT OR Apache-2.0
"""The samples of a process, and the names of their stacks."""

import re
from collections.abc import Iterable

from terrace.debug.sampled.frames import ENTRIES, Line, Location, Stack
from terrace.debug.sampled.images import Images
from terrace.debug.sampled.symbolizer import Symbolizer
from terrace.debug.sampled.table import Key, Sample, Table
from terrace.debug.target import Target
from terrace.errors import TerraceError
from terrace.messages import count

_NO_STACK = (Location(0, (Line("(no stack)"),)),)


_OWN = re.compile(f"terrace::|{ENTRIES}")


def _joined(unwound: tuple[int, ...], sample: Sample) -> tuple[int, ...]:
    """The copy of a stack may end before the stack does: frame pointers may know more."""
    pcs = sample.pcs
    if not unwound:
        return pcs or (sample.copy.followed() if sample.copy is not None else ())
    return unwound + (pcs[pcs.index(unwound[-1]) + 1 :] if unwound[-1] in pcs else ())


class Stacks:
    """Names the stacks of one process."""

    def __init__(self, target: Target) -> None:
        mappings = target.mappings()
        self._code = [m for m in mappings if "x" in m.permissions]
        self.images = Images(mappings, target.memory, target.root)
        self._made = target.perf_map()
        self._symbolizer = Symbolizer(self.images, self._made)
        self._libraries = {f.mapping.path for f in target.heaps if ".so" in f.mapping.path}

    def _is_code(self, address: int) -> bool:
        """Also such as was made at run time."""
        return (
            self.images.region(address) is not None
            or self._made.name(address) is not None
            or any(m.start <= address < m.end for m in self._code)
        )

    def _pcs(self, sample: Sample) -> tuple[int, ...]:
        """Without the library's own functions, up to what is no code: there the caller of the
        outermost function was looked for, or a register was no frame pointer."""
        unwound = self._symbolizer.stack_of(sample.copy) if sample.copy is not None else ()
        kept: list[int] = []
        for pc in _joined(unwound, sample):
            if not self._is_code(pc - 1):
                break
            region = self.images.region(pc - 1)
            if kept or region is None or region.path not in self._libraries:
                kept.append(pc)
        return tuple(kept)

    def _of_the_program(self, stack: Stack) -> Stack:
        """Where Terrace is part of the program, names tell its functions from others."""
        i = 0
        while (
            not self._libraries and i < len(stack) - 1 and _OWN.match(stack[i].lines[-1].function)
        ):
            i += 1
        return stack[i:]

    def named(self, samples: Iterable[Sample]) -> list[tuple[Sample, Stack]]:
        found = [(sample, self._pcs(sample)) for sample in samples]
        locations = self._symbolizer.locations({pc for _, pcs in found for pc in pcs})
        return [
            (sample, self._of_the_program(tuple(locations[pc] for pc in pcs)) or _NO_STACK)
            for sample, pcs in found
        ]


class Reader:
    """The tables of a process: one for each heap that samples."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.tables = [Table(found.layout, target.memory) for found in target.heaps]

    @property
    def period(self) -> int:
        return max(table.period for table in self.tables)

    @property
    def taken(self) -> int:
        return sum(table.taken for table in self.tables)

    def samples(self) -> dict[Key, Sample]:
        """By heap and key; freed ones too."""
        return {(i, *s.key): s for i, table in enumerate(self.tables) for s in table.samples()}

    def newest(self, key: Key, sample: Sample) -> Sample:
        return self.tables[key[0]].newest(sample)

    def expect_samples(self) -> None:
        """Else there is nothing to show, and a line says what to do."""
        if self.period or self.taken:
            return
        pid = getattr(self.target, "pid", None)
        by_hand = f"`terrace profile --start {pid}`, or " if pid else ""
        raise TerraceError(
            f"{self.target.title} does not sample its allocations: switch that on by {by_hand}"
            "TERRACE_PROFILE=524288 in its environment at its start"
        )

    def notes(self) -> list[str]:
        lost = sum(table.lost for table in self.tables)
        if not lost:
            return []
        return [f"{count(lost, 'sample')} did not fit into the table: a longer period loses none"]
