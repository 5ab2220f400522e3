# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the suites agent and watch share: looks at a program that runs, and knows what it keeps."""

import contextlib
import itertools
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from terrace.captured import run_captured, said
from terrace.jdk.programs import COLLECTORS, compile_programs
from terrace.jdk.session import FAILED, PASSED, STOCK, Session, Setting, Suite, java_environment

_PROGRAM = ("Kept", "8", "20000")
_LONGEST = 300  # seconds for one look at the heap

Counts = dict[str, int]
# Of a look, in a setting, at a process: what is wrong, "" if nothing.
Wrong = Callable[[str, Setting, int, Counts], str]


def run_command(command: list[str]) -> str:
    """What it prints; begins with 'Exception' when it fails."""
    try:
        done = run_captured(command, java_environment(), timeout=_LONGEST)
    except subprocess.TimeoutExpired:
        return f"Exception: not done after {_LONGEST} s: {' '.join(command)}"
    return (
        said(done)
        if done.returncode == 0
        else f"Exception: exit status {done.returncode}: {said(done)}"
    )


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
def _kept(java: Path, flags: tuple[str, ...], classes: Path) -> Iterator[tuple[int, Counts]]:
    """The running program, which waits: its process, and what it keeps."""
    command = [str(java), *flags, "-cp", str(classes), *_PROGRAM]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        try:
            yield process.pid, _read_counts(process.stdout)
        finally:
            process.kill()


def _tell(name: str, wrong: str, seconds: float) -> None:
    print(f"{'FAILED' if wrong else 'ok':7} {name} ({seconds:.1f} s)", flush=True)
    if wrong:
        print(wrong, flush=True)


def look_at(
    session: Session,
    suite: Suite,
    settings: list[Setting],
    heap: tuple[str, ...],
    looks: list[str],
    wrong_in: Wrong,
) -> Suite:
    """Each look in each setting, on each collector."""
    classes = compile_programs(session.checkout, session.stock)
    java, began = session.image / "bin" / "java", time.monotonic()
    for collector, setting in itertools.product(COLLECTORS, settings):
        wanted = [n for n in looks if session.wants(f"{n}, {collector}, {setting.name}")]
        if not wanted:
            continue
        flags = (f"-XX:+Use{collector}GC", *heap, *setting.stock, *setting.patched)
        with _kept(java, flags, classes) as (pid, expected):
            for look in wanted:
                start = time.monotonic()
                failed = "the program has failed"
                wrong = wrong_in(look, setting, pid, expected) if expected else failed
                name = f"{look}, {collector}"
                _tell(f"{name}, {setting.name}", wrong, time.monotonic() - start)
                suite.put(STOCK, name, PASSED)
                suite.put(setting.name, name, FAILED if wrong else PASSED)
    suite.seconds = time.monotonic() - began
    suite.print_counts()
    return suite
