# SPDX-License-Identifier: MIT OR Apache-2.0
"""`terrace run`: a program on Terrace, and what each level did.

The way to the program's start is short: rich and what builds are imported when they are needed.
"""

import argparse
import contextlib
import json
import os
import re
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass

from terrace import launch, messages
from terrace.arguments import Commands, behind_dashes
from terrace.checkout import Checkout
from terrace.errors import TerraceError
from terrace.library import OTHERS, find_library, find_other
from terrace.messages import count, say
from terrace.report import stats


@dataclass(frozen=True)
class RunOptions:
    """The command line of `run`; at most one of the last three is given."""

    command: list[str]
    per_class: bool = False
    json_path: str | None = None
    quiet: bool = False


def preload_environment(library: str, pattern: str | None = None) -> dict[bytes, bytes]:
    """The environment for the program: Terrace before whatever is preloaded already."""
    environment = launch.original_environment()
    others = environment.get(b"LD_PRELOAD", b"")
    environment[b"LD_PRELOAD"] = os.fsencode(library) + (b":" + others if others else b"")
    if pattern is not None:
        environment[b"TERRACE_STATS_FILE"] = os.fsencode(pattern)
    return environment


def make_directory(base: str | None = None) -> str:
    """A fresh directory under $TMPDIR (importing tempfile costs more than all of this)."""
    base = base or os.path.abspath(os.environ.get("TMPDIR") or "/tmp")
    path = f"{base}/terrace-{os.getpid()}-{time.time_ns():x}"
    try:
        os.mkdir(path, 0o700)
    except OSError as error:
        raise TerraceError(f"no directory for the statistics: {error}") from None
    return path


def remove_directory(path: str) -> None:
    """Without the files that somebody else still writes: they are not ours to wait for."""
    for name in os.listdir(path):
        with contextlib.suppress(OSError):
            os.unlink(os.path.join(path, name))
    with contextlib.suppress(OSError):
        os.rmdir(path)


@contextlib.contextmanager
def preloadable(library: str) -> Iterator[str]:
    """A path for LD_PRELOAD, which separates paths by spaces and colons: a link, if need be.

    The link lives as long as the program: an orphan of it that executes a program later on gets
    the dynamic linker's warning and runs without Terrace.
    """
    if not re.search("[ :]", library):
        yield library
        return
    directory = make_directory("/tmp")
    try:
        link = f"{directory}/{os.path.basename(library)}"
        os.symlink(library, link)
        yield link
    finally:
        remove_directory(directory)


def check_writable(path: str) -> None:
    """Before the program runs: a report that can not be written is a mistake in the command."""
    if os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path)):
        return  # the reader of a pipe would see its end
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666))
    except OSError as error:
        raise TerraceError(f"--json {path}: {error.strerror}", 2) from None


def _write_json(path: str, total: stats.Statistics) -> None:
    try:
        with open(path, "w", encoding="utf-8") as file:
            json.dump(total, file, indent=1)
            file.write("\n")
    except OSError as error:
        raise TerraceError(f"--json {path}: {error.strerror}") from None


def _report(options: RunOptions, ending: launch.Ending, found: stats.Collection) -> None:
    if not found.processes:
        from terrace.report.silence import why_no_statistics

        reason = why_no_statistics(options.command[0], ending)
        if options.json_path:
            _write_json(
                options.json_path, {"schema": stats.SCHEMA, "processes": 0, "reason": reason}
            )
        say(f"no statistics: {reason}")
        return
    total = stats.total(found.processes, ending.pid)
    if options.json_path:
        _write_json(options.json_path, total)
    else:
        try:
            from terrace.report.tables import print_report
        except ImportError:  # rich could not be had
            from terrace.report.plain import print_report

        print_report(total, per_class=options.per_class)
        if found.unreadable:
            say(f"left out: the incomplete statistics of {count(found.unreadable, 'process')}")


def run_program(library: str, options: RunOptions) -> int:
    """Returns the program's exit status; does not return if a signal killed it."""
    with preloadable(library) as path:
        if options.quiet:
            ending = launch.launch(options.command, preload_environment(path))
        else:
            ending = _run_and_report(path, options)
    return launch.end_like(ending)


def _run_and_report(library: str, options: RunOptions) -> launch.Ending:
    if options.json_path:
        check_writable(options.json_path)
    directory = make_directory()
    try:
        ending = launch.launch(options.command, preload_environment(library, f"{directory}/%p"))
        try:
            _report(options, ending, stats.load_directory(directory))
        except TerraceError as error:
            # The status is the program's, whatever became of the report.
            say(str(error), always=True)
        return ending
    finally:
        remove_directory(directory)


def add_parser(commands: Commands) -> None:
    parser = commands.add_parser(
        "run",
        help="run a program on Terrace and show what each level did",
        usage="terrace run [--stats | --json FILE | --quiet] [--library hardened|umem] -- "
        "PROGRAM [ARGUMENT ...]",
        description="Runs PROGRAM with Terrace preloaded. Input, output, signals and exit status "
        "are the program's; a table of what each level did follows on stderr. Where the tool was "
        "installed by pip, a PROGRAM that is a file *.py is run by the tool's Python.",
    )
    output = parser.add_mutually_exclusive_group()
    output.add_argument(
        "--stats", action="store_true", help="also a table by size class and what the columns mean"
    )
    output.add_argument("--json", metavar="FILE", help="write the statistics to FILE instead")
    output.add_argument("--quiet", action="store_true", help="print nothing")
    parser.add_argument(
        "--library",
        choices=OTHERS,
        help="in place of libterrace.so: libterrace-hardened.so, or libumem_malloc.so",
    )
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="PROGRAM [ARGUMENT ...]")
    parser.set_defaults(act=run)


def run(options: argparse.Namespace, checkout: Checkout | None) -> int:
    """The command."""
    wanted = behind_dashes(options.command)
    if not wanted:
        raise TerraceError(
            "run: no program given; usage: terrace run [OPTIONS] -- PROGRAM [ARGUMENT ...]", 2
        )
    messages.quiet = options.quiet
    if checkout is None and wanted[0].endswith(".py") and os.path.isfile(wanted[0]):
        wanted = [sys.executable, *wanted]
    library = find_other(checkout, options.library) if options.library else find_library(checkout)
    return run_program(str(library), RunOptions(wanted, options.stats, options.json, options.quiet))
