# SPDX-License-Identifier: MIT OR Apache-2.0
"""`terrace jdk test --suite agent`: jhsdb counts what a program keeps, in its process or a core."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import IO

from terrace.captured import run_captured
from terrace.jdk.programs import COLLECTORS, compile_programs
from terrace.jdk.session import (
    FAILED,
    HAB,
    PASSED,
    STOCK,
    TLAB_4K,
    Session,
    Setting,
    Suite,
    usable,
)
from terrace.messages import say

SETTINGS = (
    Setting("TLABs of 4 KiB", TLAB_4K),
    Setting("no TLABs", ("-XX:-UseTLAB",)),
    Setting("core+llc+node, TLABs of 4 KiB", TLAB_4K, (*HAB, "-XX:HABLevels=core+llc+node")),
    Setting("restartable, TLABs of 4 KiB", TLAB_4K, (*HAB, "-XX:+HABUseRestartableSequences")),
    Setting("by core", (), (*HAB, "-XX:HABAssociation=core")),
)
# No collection happens, so all objects lie where the buffers do.
_HEAP = ("-Xmx256m", "-Xmn128m")
_PROGRAM = ("Kept", "8", "20000")
_LONGEST = 300  # seconds for one look at the heap

Counts = dict[str, int]
Look = Callable[[Path, int, Path], str]


def may_attach() -> bool:
    """Whether a process may be looked at that is no child (Yama)."""
    try:
        scope = int(Path("/proc/sys/kernel/yama/ptrace_scope").read_text(encoding="ascii"))
    except (OSError, ValueError):
        scope = 0
    return scope == 0 or (scope < 3 and os.geteuid() == 0)


# Of what `jhsdb jmap --histo` prints: number, objects, bytes, class.
_ROW = re.compile(r"^\s*\d+:\s+(\d+)\s+\d+\s+(\S+)$", re.MULTILINE)


def difference(expected: Counts, answer: str) -> str:
    """What is wrong with the answer, "" if nothing."""
    rest = _ROW.sub("", answer)
    if "Exception" in rest:
        return rest
    found = {name: int(count) for count, name in _ROW.findall(answer)}
    others = {name: found.get(name, 0) for name in expected}
    wrong = (f"{name}: {others[name]} instead of {expected[name]}" for name in expected)
    return "" if others == expected else "\n".join(wrong)


def run_command(command: list[str]) -> str:
    """What it prints; begins with 'Exception' when it fails."""
    environment = {k: v for k, v in os.environ.items() if k != "JAVA_TOOL_OPTIONS"}
    try:
        done = run_captured(command, environment, timeout=_LONGEST)
    except subprocess.TimeoutExpired:
        return f"Exception: not done after {_LONGEST} s: {' '.join(command)}"
    output = done.stdout + done.stderr
    return output if done.returncode == 0 else f"Exception: exit status {done.returncode}: {output}"


def _read_counts(output: IO[str] | None) -> Counts:
    """What the program says before it is ready; nothing when it ends without being so."""
    counts: Counts = {}
    for line in output or ():
        if line == "ready\n":
            return counts
        name, count = line.split()
        counts[name] = int(count)
    return {}


@contextlib.contextmanager
def kept(java: Path, flags: tuple[str, ...], classes: Path) -> Iterator[tuple[int, Counts]]:
    """The running program, which waits: its process, and what it keeps."""
    command = [str(java), *flags, "-cp", str(classes), *_PROGRAM]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        try:
            yield process.pid, _read_counts(process.stdout)
        finally:
            process.kill()


def _histogram(image: Path, *where: str) -> str:
    return run_command([str(image / "bin" / "jhsdb"), "jmap", "--histo", *where])


def _process(image: Path, pid: int, _: Path) -> str:
    return _histogram(image, "--pid", str(pid))


def _core_file(image: Path, pid: int, directory: Path) -> str:
    """A core file is taken, looked at and removed: it is as large as the heap."""
    core = directory / f"core.{pid}"
    made = run_command(["gcore", "-o", str(directory / "core"), str(pid)])
    if not core.exists():
        return f"Exception: gcore: {made}"
    try:
        return _histogram(image, "--exe", str(image / "bin" / "java"), "--core", str(core))
    finally:
        core.unlink()


def _looks(suite: Suite) -> dict[str, Look]:
    """Ways to look at a heap; a note says why there are fewer."""
    if not may_attach():
        suite.notes.append("kernel.yama.ptrace_scope keeps jhsdb from other processes")
        return {}
    if not shutil.which("gcore"):
        suite.notes.append("gcore (package gdb) is not there: core files are left out")
        return {"process": _process}
    return {"process": _process, "core file": _core_file}


def compare(expected: Counts, name: str, wrong_in: Callable[[], str]) -> bool:
    """Prints a line, and what is wrong in full."""
    start = time.monotonic()
    wrong = wrong_in() if expected else "the program has failed"
    seconds = time.monotonic() - start
    print(f"{'FAILED' if wrong else 'ok':7} {name} ({seconds:.1f} s)", flush=True)
    if wrong:
        print(wrong, flush=True)
    return not wrong


def _wrong(expected: Counts, look: Look, session: Session, pid: int) -> str:
    return difference(expected, look(session.image, pid, session.directory))


def run(session: Session) -> Suite:
    """The installed JDK is not asked: the program knows."""
    suite = Suite("agent", session.level)
    settings = usable(SETTINGS, session.image, suite)
    looks = _looks(suite)
    for note in suite.notes:
        say(note, always=True)
    classes = compile_programs(session.checkout, session.stock)
    java, began = session.image / "bin" / "java", time.monotonic()
    for collector, setting in itertools.product(COLLECTORS, settings):
        names = {look: f"{look}, {collector}, {setting.name}" for look in looks}
        wanted = [look for look, name in names.items() if session.wants(name)]
        if not wanted:
            continue
        flags = (f"-XX:+Use{collector}GC", *_HEAP, *setting.stock, *setting.patched)
        with kept(java, flags, classes) as (pid, expected):
            for look in wanted:
                right = compare(
                    expected, names[look], partial(_wrong, expected, looks[look], session, pid)
                )
                suite.put(STOCK, f"{look}, {collector}", PASSED)
                suite.put(setting.name, f"{look}, {collector}", PASSED if right else FAILED)
    suite.seconds = time.monotonic() - began
    suite.print_counts()
    return suite
