# SPDX-License-Identifier: MIT OR Apache-2.0
"""`terrace profile`: its words. What it needs is not loaded before it is called."""

import argparse
from pathlib import Path

from terrace.arguments import Commands
from terrace.checkout import Checkout
from terrace.prepare import need_modules

MODULES = {"numpy": "numpy", "elftools": "pyelftools", "rich": "rich"}
_FORMATS = ("pprof", "collapsed", "flamegraph", "speedscope", "text")
_ENDINGS = {
    ".html": "flamegraph", ".json": "speedscope", ".collapsed": "collapsed", ".folded": "collapsed",
    ".txt": "text",
}  # fmt: skip


def add_parser(commands: Commands) -> None:
    parser = commands.add_parser(
        "profile",
        help="which code holds the memory of a process, of a core file, or of a program to run",
        usage="terrace profile [OPTIONS] PID | CORE | -- PROGRAM [ARGUMENT ...]\n"
        "       terrace profile --start PID [--period BYTES] [--frames]\n"
        "       terrace profile --watch PID [--every 10s] [--for 10m] -o PAGE.html\n"
        "       terrace profile --diff A B [-o FILE] [--format FORMAT]",
        description="Reads the samples of allocations that Terrace keeps, from outside. Without "
        "options: a table of what is in use, by the code that has allocated it.",
    )
    parser.add_argument("--peak", action="store_true", help="what was in use at the peak")
    parser.add_argument(
        "--allocated", action="store_true", help="what was allocated, also what was freed since"
    )
    parser.add_argument(
        "--seconds", type=float, metavar="N", help="only what is allocated in the next N seconds"
    )
    parser.add_argument(
        "-o", dest="output", metavar="FILE", help="write FILE: .pb.gz for pprof, .html, .json, .txt"
    )
    parser.add_argument("--format", choices=_FORMATS, help="else by FILE's ending, or a table")
    parser.add_argument(
        "--start", type=int, metavar="PID", help="let a running process sample its allocations"
    )
    parser.add_argument(
        "--period", metavar="BYTES", help="mean bytes between samples: 512k, or 0 to end it"
    )
    parser.add_argument(
        "--frames", action="store_true",
        help="stacks by frame pointers only, without copies of 8 KiB each to unwind",
    )  # fmt: skip
    parser.add_argument(
        "--diff", nargs=2, metavar=("A", "B"), help="what grew between two files of pprof's format"
    )
    parser.add_argument(
        "--watch", type=int, metavar="PID", help="look again and again, and draw a page of it"
    )
    parser.add_argument("--every", metavar="TIME", default="10s", help="--watch: 10s, 1m")
    parser.add_argument(
        "--for", dest="during", metavar="TIME", default="10m", help="--watch: 10m, 1h, or Ctrl-C"
    )
    parser.add_argument("words", nargs="*", help=argparse.SUPPRESS)
    parser.set_defaults(act=act)


def chosen_format(name: str | None, path: str | None) -> str:
    """As asked for; else by the file's ending, pprof for others; a table without a file."""
    if name is not None:
        return name
    return _ENDINGS.get(Path(path).suffix, "pprof") if path else "text"


def act(options: argparse.Namespace, checkout: Checkout | None) -> int:
    """The command."""
    options.chosen_format = chosen_format(options.format, options.output)
    modules = dict(MODULES)
    if options.watch is not None:
        modules["plotly"] = "plotly"
    elif options.chosen_format == "pprof" or options.diff is not None:
        modules["google.protobuf"] = "protobuf"
    extras = ("debug", "profile", "watch") if options.watch is not None else ("debug", "profile")
    need_modules("profile", modules, extras, checkout)
    from terrace.profile.command import run

    return run(options, checkout)
