# SPDX-License-Identifier: MIT OR Apache-2.0
"""The words of the command line. argparse: at first there is only Python itself."""

from __future__ import annotations

import argparse
from pathlib import Path

from terrace import __version__


def _add_run(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "run",
        help="run a program on Terrace and show what each level did",
        usage="terrace run [--stats | --json FILE | --quiet] -- PROGRAM [ARGUMENT ...]",
        description="Runs PROGRAM with Terrace preloaded. Input, output, signals and exit status "
        "are the program's; a table of what each level did follows on stderr.",
    )
    output = parser.add_mutually_exclusive_group()
    output.add_argument(
        "--stats", action="store_true", help="also a table by size class and what the columns mean"
    )
    output.add_argument("--json", metavar="FILE", help="write the statistics to FILE instead")
    output.add_argument("--quiet", action="store_true", help="print nothing")
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="PROGRAM [ARGUMENT ...]")


def _add_test(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "test",
        help="build the checkout and run its tests",
        description="Builds presets and runs their tests. "
        "The last line is 'N passed, N failed, N skipped'. With vm: runs the tests on other "
        "kernels and machines in qemu instead, and writes docs/guide/kernels.md.",
    )
    parser.add_argument("where", nargs="?", choices=["vm"], help="on emulated machines")
    parser.add_argument(
        "--preset", action="append", metavar="NAME", help="only this preset (may be given again)"
    )
    parser.add_argument("--quick", action="store_true", help="only the preset dev")
    parser.add_argument(
        "--changed",
        action="store_true",
        help="only tests that matter for what differs from main: a first look, in two minutes",
    )
    parser.add_argument(
        "--all",
        action="store_true",
        help="also what a preset says no more than another one, and all models in full",
    )
    parser.add_argument(
        "--minutes", type=float, default=60, metavar="N", help="vm: time for the tests of a guest"
    )
    parser.add_argument(
        "--filter", metavar="REGEX", help="only tests (vm: guests) whose name matches"
    )


def _add_record(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "record",
        help="record the malloc calls of a program, to replay them or to look at them",
        usage="terrace record [-o FILE] [--summary] -- PROGRAM [ARGUMENT ...]\n"
        "       terrace record --summary FILE",
        description="Writes all calls of malloc and its relatives that PROGRAM makes to FILE, "
        "those of its other processes to FILE.PID. Input, output, signals and exit status are "
        "the program's. With --summary and a trace instead of -- PROGRAM, nothing is run.",
    )
    parser.add_argument(
        "-o", "--output", metavar="FILE", default="terrace.trace", help="default terrace.trace"
    )
    parser.add_argument(
        "--summary", action="store_true", help="calls, threads, memory, sizes and lifetimes"
    )
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="PROGRAM [ARGUMENT ...]")


def _add_fuzz(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "fuzz",
        help="list the fuzzers, or let one look for faults",
        description="Builds the fuzzers with Clang's libFuzzer and runs one.",
    )
    parser.add_argument("name", nargs="?", help="which one; without a name they are listed")
    parser.add_argument(
        "--seconds", type=int, default=60, metavar="N", help="how long (default 60)"
    )


def _add_docs(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "docs",
        help="make the documentation site, and check every link in it",
        description="Writes build/site. A link to a file or heading that does not exist is an "
        "error.",
    )
    parser.add_argument("--serve", action="store_true", help="show it on 127.0.0.1, until Ctrl-C")
    parser.add_argument(
        "--port", type=int, default=8000, metavar="N", help="of --serve (default 8000)"
    )


def _add_jdk(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "jdk",
        help="build a JDK whose TLABs come from buffers of the cores; run or test it",
        description="Patches HotSpot's source (integrations/hotspot), builds libjvm and puts it "
        "into a copy of the installed JDK of the same version. What was done is not done again.",
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    build = actions.add_parser("build", help="build it, or what has changed of it")
    build.add_argument(
        "--unpatched",
        action="store_true",
        help="one without the patches, by the same compiler, to compare with",
    )
    run = actions.add_parser(
        "run", help="run Java on it", usage="terrace jdk run [--fastdebug] -- JAVA ARGUMENTS"
    )
    test = actions.add_parser("test", help="compare its results with the installed JDK's")
    for action in (build, run, test):
        action.add_argument("--fastdebug", action="store_true", help="with HotSpot's assertions")
    test.add_argument(
        "--suite",
        choices=(
            "programs",
            "apps",
            "jtreg",
            "tier1",
            "hab",
            "gtest",
            "agent",
            "watch",
            "stress",
            "fuzz",
            "areas",
            "all",
        ),
        default="all",
        help="programs and applications that must compute the same, HotSpot's own tests, 1,000 "
        "threads and programs from seeds for --seconds; default: all but areas, 4 hours",
    )
    test.add_argument(
        "--filter",
        action="append",
        default=[],
        metavar="TEXT",
        help="only runs whose name has it; given again, those that have one of the texts",
    )
    test.add_argument(
        "--seconds",
        type=int,
        default=600,
        help="of the stress, and of each setting of fuzz; default: 600",
    )
    test.add_argument(
        "--first", type=int, default=0, metavar="BATCH", help="of fuzz; default: 0, as each time"
    )
    test.add_argument("--image", type=Path, metavar="JDK", help="a patched JDK, not the one here")
    test.add_argument("--stock", type=Path, metavar="JDK", help="what it is compared with")
    test.add_argument("--no-page", action="store_true", help="docs/guide/jdk-tests.md stays")
    run.add_argument("command", nargs=argparse.REMAINDER, metavar="JAVA ARGUMENTS")


_TARGET = "a process's number, or a core file"


def _add_debugger(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    findleaks = commands.add_parser(
        "findleaks",
        help="list the blocks that a process, or the one that left a core file, can not reach",
        description="Marks from the program's data, stacks and registers, and lists what was "
        "allocated and is not reached. The process stands still while its memory is copied.",
    )
    findleaks.add_argument("--all", action="store_true", help="all groups of leaked blocks")
    findleaks.add_argument(
        "--through", metavar="FUNCTION", help="only what it allocated: under UMEM_DEBUG=audit"
    )
    whatis = commands.add_parser(
        "whatis",
        help="say what an address is: allocated or freed, of which size, where it waits",
        description="Says what lies at an address of the process.",
    )
    commands.add_parser(
        "umastat",
        help="a table of size classes: in use, held by each level, memory, allocations",
        description="Reads the process as it runs; nothing is stopped.",
    )
    commands.add_parser(
        "verify",
        help="look whether the heap is consistent: magazines, slabs, page map",
        description="Exit status 1 when a fault was found. The process stands still for a copy.",
    )
    top = commands.add_parser(
        "top",
        help="what is live and how fast it changes, on a screen that refreshes",
        description="Reads the process as it runs; nothing is stopped. Ends with Ctrl-C.",
    )
    top.add_argument("--seconds", type=float, default=1, metavar="N", help="between two looks")
    top.add_argument("--count", type=int, metavar="N", help="end after so many looks")
    umausers = commands.add_parser(
        "umausers",
        help="who has allocated the objects in use, where UMEM_DEBUG=audit is on",
        description="Groups objects in use by stack and size. Shown are groups of 8 KiB or of 100 "
        "objects.",
    )
    umausers.add_argument("-e", dest="every", action="store_true", help="all groups")
    umausers.add_argument("-f", dest="full", action="store_true", help="each object, too")
    umem = commands.add_parser(
        "umem",
        help="a command of libumem's debugger: umem_status, umem_cache, bufctl, vmem, walk, ...",
        description="Names, columns and meaning are those of the debugger's commands on libumem. "
        "Without COMMAND they are listed. Addresses are in hexadecimal.",
    )
    for name in DEBUGGER:
        commands.choices[name].add_argument("target", metavar="PID|CORE", help=_TARGET)
    whatis.add_argument("address", metavar="ADDRESS", help="in hexadecimal")
    umausers.add_argument("caches", metavar="CACHE", nargs="*", help="only of these")
    umem.add_argument(
        "words", metavar="COMMAND ...", nargs=argparse.REMAINDER, help="and what it takes"
    )


DEBUGGER = ("findleaks", "whatis", "umastat", "verify", "top", "umausers", "umem")


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """What the subcommand does not know ends with the usage of the subcommand."""
    parser = make_parser()
    options, unknown = parser.parse_known_args(arguments)
    if unknown:
        options.parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    return options


def make_parser() -> argparse.ArgumentParser:
    """The whole command line."""
    parser = argparse.ArgumentParser(
        prog="terrace", description="Memory allocation by levels: thread, core, processor, global."
    )
    parser.add_argument("--version", action="version", version=f"terrace {__version__}")
    commands = parser.add_subparsers(dest="subcommand", metavar="COMMAND", required=True)
    _add_run(commands)
    doctor = commands.add_parser(
        "doctor", help="say which rung of the fallback ladder is in use here, and why"
    )
    doctor.add_argument("--json", action="store_true", help="for programs to read")
    _add_test(commands)
    _add_record(commands)
    _add_fuzz(commands)
    _add_docs(commands)
    _add_jdk(commands)
    _add_debugger(commands)
    bench = commands.add_parser("bench", help="list the benchmarks, or run one")
    bench.add_argument("name", nargs="?", help="which one; without a name they are listed")
    bench.add_argument(
        "arguments", nargs=argparse.REMAINDER, help="what the benchmark itself understands"
    )
    for subparser in commands.choices.values():
        subparser.set_defaults(parser=subparser)
    return parser
