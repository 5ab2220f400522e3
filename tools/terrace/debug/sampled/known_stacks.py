# SPDX-License-Identifier: MIT OR Apache-2.0
"""Stacks that were unwound once: a copy with the same return addresses in the same places is one.

Samples are many, and the code that allocates is little: to unwind each takes a millisecond.
"""

from dataclasses import dataclass, field

_WORD = 8


@dataclass
class _Frame:
    """By where the next return address is in the copy, and what it is, the caller's frame."""

    callers: dict[int, dict[int, "_Frame"]] = field(default_factory=dict)
    pcs: tuple[int, ...] | None = None  # of a stack that ends here


class KnownStacks:
    """For machines where a call leaves its return address on the stack."""

    def __init__(self) -> None:
        self._first: dict[int, _Frame] = {}

    def find(self, pc: int, data: bytes) -> tuple[int, ...] | None:
        """None: it has to be unwound, also where a frame's size is not always the same."""
        frame = self._first.get(pc)
        while frame is not None:
            if not frame.callers:
                return frame.pcs
            if len(frame.callers) > 1 or frame.pcs is not None:
                return None
            offset, known = next(iter(frame.callers.items()))
            frame = known.get(int.from_bytes(data[offset : offset + _WORD], "little"))
        return None

    def add(self, pc: int, sp: int, frames: list[tuple[int, int]]) -> tuple[int, ...]:
        """Each caller's stack pointer, just above the return address, and that."""
        frame = self._first.setdefault(pc, _Frame())
        for above, address in frames:
            places = frame.callers.setdefault(above - _WORD - sp, {})
            frame = places.setdefault(address, _Frame())
        frame.pcs = tuple(address for _, address in frames)
        return frame.pcs
