# SPDX-License-Identifier: MIT OR Apache-2.0
"""From the words of the command line to a target and a report."""

import argparse

from terrace.debug import damage, reports
from terrace.debug.target import Target
from terrace.errors import TerraceError


def parse_address(text: str) -> int:
    try:
        return int(text, 16 if text[:2].lower() != "0x" else 0)
    except ValueError:
        raise TerraceError(f"{text} is no address: give it in hexadecimal", 2) from None


def run(options: argparse.Namespace) -> int:
    """The exit status."""
    target = reports.open_target(options.target)
    with damage.expected(options.subcommand):
        report, status = _report(target, options)
    for line in report:
        print(line)
    return status


def _users(options: argparse.Namespace) -> list[str]:
    flags = ["-e"] * options.every + ["-f"] * options.full
    return ["umausers", *flags, *options.caches]


def _report(target: Target, options: argparse.Namespace) -> tuple[list[str], int]:
    """What it says, and the exit status."""
    if options.subcommand == "verify":
        return reports.verify(target)
    if options.subcommand in ("umem", "umausers"):
        from terrace.debug.umem.commands import run as run_umem

        words = options.words if options.subcommand == "umem" else _users(options)
        return run_umem(target, parse_address, words)
    if options.subcommand == "findleaks":
        return reports.findleaks(target, options.all, options.through), 0
    if options.subcommand == "whatis":
        return reports.whatis(target, parse_address(options.address)), 0
    return reports.umastat(target), 0
