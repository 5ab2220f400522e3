# SPDX-License-Identifier: MIT OR Apache-2.0
"""`terrace run`: a program on Terrace, and what each level did.

The way to the program's start is short: rich and what builds are imported when they are needed.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from dataclasses import dataclass

from terrace import launch, stats
from terrace.errors import TerraceError
from terrace.messages import count, say

_PT_INTERP = 3


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


def make_directory() -> str:
    """A fresh directory under $TMPDIR (importing tempfile costs more than all of this)."""
    base = os.path.abspath(os.environ.get("TMPDIR") or "/tmp")
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


def is_static(path: str) -> bool:
    """Whether an ELF file asks for no dynamic linker; False for anything else (scripts)."""
    import struct

    try:
        with open(path, "rb") as file:
            head = file.read(64)
            if len(head) < 64 or head[:6] != b"\x7fELF\x02\x01":
                return False
            offset = struct.unpack_from("<Q", head, 32)[0]
            entry_size, entries = struct.unpack_from("<HH", head, 54)
            file.seek(offset)
            table = file.read(entry_size * entries)
    except OSError:
        return False
    types = (
        struct.unpack_from("<I", table, i * entry_size)[0] for i in range(len(table) // entry_size)
    )
    return _PT_INTERP not in types


def why_no_statistics(program: str, ending: launch.Ending) -> str:
    """One sentence for a run that left no statistics."""
    import shutil
    import stat

    if ending.signal:
        name = (
            signal.Signals(ending.signal).name
            if ending.signal in set(signal.Signals)
            else str(ending.signal)
        )
        return f"{program} was killed by {name} before it could write them"
    path = shutil.which(program) or program
    with contextlib.suppress(OSError):
        if os.stat(path).st_mode & (stat.S_ISUID | stat.S_ISGID):
            return f"{program} is setuid or setgid, where the system ignores LD_PRELOAD"
    if is_static(path):
        return f"{program} is statically linked, nothing can be preloaded into it"
    return f"{program} ended with _exit (or cleared its environment, or is static behind a script)"


def _write_json(path: str, total: stats.Statistics) -> None:
    try:
        with open(path, "w", encoding="utf-8") as file:
            json.dump(total, file, indent=1)
            file.write("\n")
    except OSError as error:
        raise TerraceError(f"--json {path}: {error.strerror}") from None


def _report(options: RunOptions, ending: launch.Ending, found: stats.Collection) -> None:
    if not found.processes:
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
        from terrace.report import print_report

        print_report(total, per_class=options.per_class)
        if found.unreadable:
            say(f"left out: the incomplete statistics of {count(found.unreadable, 'process')}")


def run_program(library: str, options: RunOptions) -> int:
    """Returns the program's exit status; does not return if a signal killed it."""
    if options.quiet:
        return launch.end_like(launch.launch(options.command, preload_environment(library)))
    directory = make_directory()
    try:
        ending = launch.launch(options.command, preload_environment(library, f"{directory}/%p"))
        try:
            _report(options, ending, stats.load_directory(directory))
        except TerraceError as error:
            # The program's own status comes first, what became of the report only after success.
            say(str(error), always=True)
            return launch.end_like(ending) or error.status
    finally:
        remove_directory(directory)
    return launch.end_like(ending)
