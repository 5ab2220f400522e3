# SPDX-License-Identifier: MIT OR Apache-2.0
"""What each command says of a target; `terrace`, libumem's command names and gdb all ask here."""

from collections.abc import Callable
from pathlib import Path

from terrace.debug.target import Target
from terrace.errors import TerraceError


def open_target(name: str, samples_alone: bool = False) -> Target:
    """A number is a process, anything else a core file, or a profile where samples are enough."""
    if name.isdecimal() and not Path(name).exists():
        from terrace.debug.live import LiveTarget

        return LiveTarget(int(name))
    from terrace.debug.core import CoreTarget

    target = CoreTarget(Path(name))
    if target.is_profile and not samples_alone:
        raise TerraceError(f"{target.title} has samples only: `terrace profile {name}` reads them")
    return target


def each_heap(target: Target, lines: Callable[[], list[str]]) -> list[str]:
    """The report of each heap in turn, where a process has several."""
    found: list[str] = []
    for i in range(len(target.heaps)):
        target.chosen = i
        if len(target.heaps) > 1:
            found += ([""] if found else []) + [f"the heap of {target.library}:"]
        found += lines()
    return found


def findleaks(target: Target, everything: bool, through: str | None = None) -> list[str]:
    from terrace.debug.findleaks import find, lines, lines_through

    def report() -> list[str]:
        found = find(target)
        if through is not None:
            return lines_through(target, found, through, everything)
        return lines(target, found, everything)

    return each_heap(target, report)


def whatis(target: Target, address: int) -> list[str]:
    """By the heap that the address lies in, else by the first."""
    from terrace.debug.whatis import lines

    for i, heap in enumerate(target.heaps):
        base = heap.layout.of_heap(target.memory, "window.base")
        if base <= address < base + heap.layout.of_heap(target.memory, "window.extent"):
            target.chosen = i
            return lines(target, address)
    with_umem = (i for i, heap in enumerate(target.heaps) if heap.umem is not None)
    target.chosen = next(with_umem, target.chosen)  # arenas may have it
    return lines(target, address)


def umastat(target: Target) -> list[str]:
    from terrace.debug.umastat import lines

    return each_heap(target, lambda: lines(target))


def verify(target: Target) -> tuple[list[str], int]:
    """And status 1 when something is wrong."""
    from terrace.debug import verify

    faults = 0

    def lines() -> list[str]:
        nonlocal faults
        verdict = verify.verify(target)
        faults += len(verdict.faults)
        return verify.lines(target, verdict)

    return each_heap(target, lines), 1 if faults else 0
