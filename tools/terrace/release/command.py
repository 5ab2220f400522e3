# SPDX-License-Identifier: MIT OR Apache-2.0
"""`terrace release --check`: a line for each thing that a release needs; exit status 1 without."""

import argparse
from collections.abc import Callable, Iterator

from terrace.arguments import Commands
from terrace.checkout import Checkout, need_checkout
from terrace.errors import TerraceError
from terrace.prepare import prepare


def add_parser(commands: Commands) -> None:
    parser = commands.add_parser(
        "release",
        help="look whether this checkout can be released",
        description="Looks at version, changelog, licences and binary interface, makes all "
        "packages in build/packages, and a list of what they are made of (SPDX). Exit status 1 "
        "where one fails.",
    )
    parser.add_argument("--check", action="store_true", required=True, help="all of this")
    parser.set_defaults(act=run)


def check_all(steps: Iterator[tuple[str, Callable[[], str]]]) -> int:
    """Each step returns what it found, or raises what is wrong."""
    status = 0
    for name, step in steps:
        try:
            print(f"{name:<12} ok      {step()}", flush=True)
        except TerraceError as error:
            print(f"{name:<12} FAILED  {' '.join(str(error).split())}", flush=True)
            status = 1
    return status


def run(options: argparse.Namespace, checkout: Checkout | None) -> int:
    """The command."""
    checkout = need_checkout(checkout, options.subcommand)
    prepare(checkout, ("package", "cross"), ("package",))
    from terrace.release.steps import steps

    return check_all(steps(checkout))
