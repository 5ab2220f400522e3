# SPDX-License-Identifier: MIT OR Apache-2.0
"""`terrace record`: the malloc calls of a program and of all its processes, each in a trace."""

import argparse
import contextlib
import importlib.util
import json
import os
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from terrace import build, launch
from terrace.arguments import Commands, behind_dashes
from terrace.captured import run_captured
from terrace.checkout import Checkout, need_checkout
from terrace.errors import TerraceError
from terrace.messages import count, say
from terrace.prepare import prepare
from terrace.run import preloadable

TARGETS = ("terrace_recorder", "terrace_trace")
DEFAULT_OUTPUT = "terrace.trace"
SOURCES = "tools/record"
MAGIC = b"TraceTe1"  # what a trace begins with

Summary = dict[str, Any]


@dataclass(frozen=True)
class Programs:
    """What is preloaded, and what reads traces."""

    recorder: Path
    reader: Path


@dataclass(frozen=True)
class RecordOptions:
    """The command line of `record`."""

    command: list[str]
    output: str = DEFAULT_OUTPUT
    summary: bool = False


def find_programs(checkout: Checkout) -> Programs:
    """Builds them if they are not there or older than their sources."""
    directory = checkout.build / "release" / SOURCES
    programs = Programs(directory / "libterrace_record.so", directory / "terrace_trace")
    newest = max(path.stat().st_mtime for path in (checkout.root / SOURCES).iterdir())
    made = (programs.recorder, programs.reader)
    if all(path.exists() and path.stat().st_mtime >= newest for path in made):
        return programs
    with checkout.locked():
        if not (checkout.build / "release" / "build.ninja").exists():
            build.configure(checkout, "release", {"TERRACE_TESTS": "OFF", "TERRACE_BENCH": "OFF"})
        build.compile_targets(checkout, "release", TARGETS)
        for path in made:
            path.touch()  # an edit that changed nothing in the result
    return programs


def read_summary(programs: Programs, trace: str) -> Summary:
    """Status 2 and the reader's own words for a file that is no trace."""
    done = run_captured([str(programs.reader), "summary", trace])
    if done.returncode != 0:
        raise TerraceError(done.stderr.strip(), 2)
    summary: Summary = json.loads(done.stdout)
    return summary


def _make_directory(output: str) -> Path:
    """Beside the result, so that what is in it only has to be renamed."""
    path = Path(f"{os.path.abspath(output)}.{os.getpid()}-{time.time_ns():x}")
    try:
        path.mkdir()
    except OSError as error:
        raise TerraceError(f"record: {path}: {error.strerror}") from None
    return path


def _environment(recorder: str, directory: Path) -> dict[bytes, bytes]:
    environment = launch.original_environment()
    others = environment.get(b"LD_PRELOAD", b"")
    environment[b"LD_PRELOAD"] = os.fsencode(recorder) + (b":" + others if others else b"")
    environment[b"TERRACE_RECORD_FILE"] = os.fsencode(directory) + b"/%p"
    return environment


def _image(path: Path) -> tuple[int, int]:
    """A process that calls exec has a trace for each program image: PID, PID.2, PID.3."""
    pid, _, image = path.name.partition(".")
    return int(pid), int(image or 1)


def _remove_earlier(output: str) -> None:
    """Traces that an earlier recording has left under names that this one would use."""
    name = re.compile(re.escape(Path(output).name) + r"\.\d+(\.\d+)?")
    for path in Path(output).absolute().parent.iterdir():
        if name.fullmatch(path.name) and path.is_file():
            with path.open("rb") as file:
                is_trace = file.read(len(MAGIC)) == MAGIC
            if is_trace:
                path.unlink()


def collect(directory: Path, output: str, pid: int) -> tuple[Path | None, list[Path]]:
    """Gives the traces their names: OUTPUT is the last image of the process that was started, the
    others are OUTPUT.PID or OUTPUT.PID.IMAGE."""
    found = sorted(directory.iterdir(), key=_image)
    of_program = [path for path in found if _image(path)[0] == pid]
    chosen = of_program[-1] if of_program else None
    _remove_earlier(output)
    others = [path.rename(f"{output}.{path.name}") for path in found if path != chosen]
    return (chosen.rename(output) if chosen else None), others


def _tell(
    programs: Programs, options: RecordOptions, main: Path | None, others: list[Path]
) -> None:
    if main is None:
        say(
            f"no trace: {options.command[0]} is static, setuid, or never called malloc; "
            f"its children have left {count(len(others), 'trace')}"
        )
        return
    summary = read_summary(programs, str(main))
    calls, threads = summary["calls"], len(summary["threads"])
    text = f"{main}: {count(calls, 'call')} by {count(threads, 'thread')} of {summary['command']}"
    if others:
        text += f"; {count(len(others), 'trace')} of other processes beside it: {main}.PID"
    say(text)
    if summary["incomplete"]:
        say(f"the trace ends early: {os.strerror(summary['incomplete'])}", always=True)
    if options.summary:
        _print(summary)


def _print(summary: Summary) -> None:
    try:
        from terrace.report.record import print_summary
    except ImportError:
        raise TerraceError("record --summary needs the Python package rich") from None

    print_summary(summary)


def summarise(programs: Programs, trace: str) -> int:
    """`terrace record --summary TRACE`."""
    _print(read_summary(programs, trace))
    return 0


def record_program(programs: Programs, options: RecordOptions) -> int:
    """Returns the program's exit status; does not return if a signal killed it."""
    directory = _make_directory(options.output)
    try:
        with preloadable(str(programs.recorder)) as recorder:
            ending = launch.launch(options.command, _environment(recorder, directory))
        try:
            main, others = collect(directory, options.output, ending.pid)
            _tell(programs, options, main, others)
        except (TerraceError, OSError) as error:
            # The program's own status comes first, what became of the trace only after success.
            say(str(error), always=True)
            return launch.end_like(ending) or getattr(error, "status", 1)
    finally:
        with contextlib.suppress(OSError):
            directory.rmdir()
    return launch.end_like(ending)


def add_parser(commands: Commands) -> None:
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
    parser.set_defaults(act=run)


def run(options: argparse.Namespace, checkout: Checkout | None) -> int:
    """The command."""
    runs = options.command[:1] == ["--"] or not options.summary
    wanted = behind_dashes(options.command)
    if not wanted or (not runs and len(wanted) > 1):
        raise TerraceError(
            "record: usage: terrace record [-o FILE] [--summary] -- PROGRAM [ARGUMENT ...], "
            "or terrace record --summary FILE",
            2,
        )
    checkout = need_checkout(checkout, "record")
    if options.summary and importlib.util.find_spec("rich") is None:
        prepare(checkout)
    programs = find_programs(checkout)
    if not runs:
        return summarise(programs, wanted[0])
    return record_program(programs, RecordOptions(wanted, options.output, options.summary))
