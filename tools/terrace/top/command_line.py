# SPDX-License-Identifier: MIT OR Apache-2.0
"""`terrace top`: its words. What it needs is not loaded before it is called."""

import argparse
import sys

from terrace.arguments import Commands
from terrace.checkout import Checkout
from terrace.debug.command_line import MODULES
from terrace.errors import TerraceError
from terrace.prepare import need_modules


def add_parser(commands: Commands) -> None:
    parser = commands.add_parser(
        "top",
        help="what is live and how fast it changes, on a screen that refreshes",
        description="Reads the process as it runs; nothing is stopped but for a key's report. Keys "
        "are listed at the bottom.",
    )
    parser.add_argument("target", metavar="PID", help="a process's number")
    parser.add_argument("--seconds", type=float, default=1, metavar="N", help="between two looks")
    parser.add_argument("--once", action="store_true", help="print tables after two looks, and end")
    parser.add_argument("--json", action="store_true", help="with --once: for scripts")
    parser.set_defaults(act=act)


def act(options: argparse.Namespace, checkout: Checkout | None) -> int:
    """The command."""
    if options.json and not options.once:
        raise TerraceError("top: --json is for --once", 2)
    if options.seconds <= 0:
        raise TerraceError(f"top: --seconds {options.seconds:g}: more than 0", 2)
    if not options.once and not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise TerraceError("top: this is no terminal; --once prints tables", 2)
    screen = {} if options.once else {"textual": "textual"}
    need_modules("top", {**MODULES, **screen}, ("debug", "top"), checkout)
    from terrace.top.looks import once, process

    target = process(options.target)
    if options.once:
        return once(target, options.seconds, options.json)
    from terrace.top.screen import TopScreen

    return TopScreen(target, options.seconds).run() or 0
