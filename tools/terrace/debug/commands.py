# SPDX-License-Identifier: MIT OR Apache-2.0
"""From the words of the command line to a target and a report."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path

from terrace.debug import damage
from terrace.debug.target import Target
from terrace.errors import TerraceError


def open_target(name: str) -> Target:
    """A number is a process, anything else a core file."""
    if name.isdecimal() and not Path(name).exists():
        from terrace.debug.live import LiveTarget

        return LiveTarget(int(name))
    from terrace.debug.core import CoreTarget

    return CoreTarget(Path(name))


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


def top(target: Target, seconds: float, looks: int | None) -> int:
    from terrace.debug.live import LiveTarget
    from terrace.debug.top import top

    if not isinstance(target, LiveTarget):
        raise TerraceError("top: a core file does not change; see umastat")
    return top(target, seconds, looks)


def parse_address(text: str) -> int:
    try:
        return int(text, 16 if text[:2].lower() != "0x" else 0)
    except ValueError:
        raise TerraceError(f"{text} is no address: give it in hexadecimal", 2) from None


def run(options: argparse.Namespace) -> int:
    """The exit status."""
    target = open_target(options.target)
    try:
        if options.subcommand == "top":
            return top(target, options.seconds, options.count)
        with damage.expected(options.subcommand):
            report, status = _report(target, options)
        for line in report:
            print(line)
        return status
    except BrokenPipeError:  # nobody reads on
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _users(options: argparse.Namespace) -> list[str]:
    flags = ["-e"] * options.every + ["-f"] * options.full
    return ["umausers", *flags, *options.caches]


def _report(target: Target, options: argparse.Namespace) -> tuple[list[str], int]:
    """What it says, and the exit status."""
    if options.subcommand == "verify":
        return verify(target)
    if options.subcommand in ("umem", "umausers"):
        from terrace.debug.umem.commands import run as run_umem

        words = options.words if options.subcommand == "umem" else _users(options)
        return run_umem(target, parse_address, words)
    if options.subcommand == "findleaks":
        return findleaks(target, options.all, options.through), 0
    if options.subcommand == "whatis":
        return whatis(target, parse_address(options.address)), 0
    return umastat(target), 0
