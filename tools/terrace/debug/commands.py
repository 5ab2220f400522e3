# SPDX-License-Identifier: MIT OR Apache-2.0
"""From the words of the command line to a target and a report."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from terrace.debug.target import Target
from terrace.errors import TerraceError


def open_target(name: str) -> Target:
    """A number is a process, anything else a core file."""
    if name.isdecimal() and not Path(name).exists():
        from terrace.debug.live import LiveTarget

        return LiveTarget(int(name))
    from terrace.debug.core import CoreTarget

    return CoreTarget(Path(name))


def findleaks(target: Target, everything: bool) -> int:
    from terrace.debug.findleaks import find, lines

    print("\n".join(lines(target, find(target), everything)))
    return 0


def whatis(target: Target, address: int) -> int:
    from terrace.debug.whatis import line

    print(line(target, address))
    return 0


def umastat(target: Target) -> int:
    from terrace.debug.umastat import lines

    print("\n".join(lines(target)))
    return 0


def verify(target: Target) -> int:
    """1 when something is wrong."""
    from terrace.debug import verify

    verdict = verify.verify(target)
    print("\n".join(verify.lines(target, verdict)))
    return 1 if verdict.faults else 0


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
        if options.subcommand == "findleaks":
            return findleaks(target, options.all)
        if options.subcommand == "whatis":
            return whatis(target, parse_address(options.address))
        if options.subcommand == "umastat":
            return umastat(target)
        if options.subcommand == "verify":
            return verify(target)
        return top(target, options.seconds, options.count)
    except BrokenPipeError:  # nobody reads on
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
