# SPDX-License-Identifier: MIT OR Apache-2.0
"""Which module has which command; of these only the one that is called is loaded.

Each has add_parser(), which describes the command's words, and what is done then.
"""

import argparse
import importlib
import os
import signal
import sys

from terrace import __version__, messages
from terrace.arguments import DEBUGGER
from terrace.checkout import find_checkout
from terrace.errors import TerraceError

MODULES = {
    "run": "run",
    "doctor": "doctor",
    "test": "test",
    "record": "record",
    "fuzz": "fuzz",
    "package": "package.command",
    "release": "release.command",
    "docs": "docs",
    "jdk": "jdk.command",
    **dict.fromkeys(DEBUGGER, "debug.command_line"),
    "top": "top.command_line",
    "profile": "profile.command_line",
    "export": "export.command_line",
    "bench": "bench",
}


def make_parser(names: list[str]) -> argparse.ArgumentParser:
    """The command line, with some of the commands."""
    parser = argparse.ArgumentParser(
        prog="terrace", description="Memory allocation by levels: thread, core, processor, global."
    )
    parser.add_argument("--version", action="version", version=f"terrace {__version__}")
    commands = parser.add_subparsers(dest="subcommand", metavar="COMMAND", required=True)
    for module in dict.fromkeys(MODULES[name] for name in names):
        importlib.import_module(f"terrace.{module}").add_parser(commands)
    for subparser in commands.choices.values():
        subparser.set_defaults(parser=subparser)
    return parser


def parse(arguments: list[str]) -> argparse.Namespace:
    """What the subcommand does not know ends with the usage of the subcommand."""
    named = [name for name in arguments[:1] if name in MODULES]
    options, unknown = make_parser(named or list(MODULES)).parse_known_args(arguments)
    if unknown:
        options.parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    return options


def _act(options: argparse.Namespace) -> int:
    """The exit status, once all output is written."""
    try:
        return int(options.act(options, find_checkout()))
    finally:
        if sys.stdout is not None:
            sys.stdout.flush()


def main(arguments: list[str] | None = None) -> int:
    """Returns the exit status; what a person can mend is one line on stderr, no traceback."""
    options = parse(sys.argv[1:] if arguments is None else arguments)
    try:
        return _act(options)
    except TerraceError as error:
        messages.say(str(error), always=True)
        return error.status
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # nobody reads on
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 128 + signal.SIGPIPE
