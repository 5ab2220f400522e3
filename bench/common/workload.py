# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the comparison of allocators runs: a workload has a name and measures itself under one allocator."""

import contextlib
import json
import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from interleave import Subject, Values


class Failed(Exception):
    """The workload did not end well under this allocator: one line on why."""


def _nothing(_scratch: Path) -> None:
    pass


@dataclass(frozen=True)
class Workload:
    """`measure` gives seconds, cpu_seconds, peak_rss (bytes) and faults, and what else the workload knows of:
    settled_rss (bytes, after everything was freed and a second has passed) and operations. It raises Failed.

    `latency` is the same work with every single call timed, which slows it down: a run of its own, of which only the
    latencies count, in nanoseconds: malloc_p50, malloc_p99, malloc_p999, free_p50, free_p99, free_p999."""

    name: str
    group: str  # micro, trace or program
    threads: int
    measure: Callable[[Subject, Path], Values]  # under an allocator, in a scratch directory
    prepare: Callable[[Path], None] = _nothing  # once per scratch directory, outside of any measurement
    latency: Callable[[Subject, Path], Values] | None = None

    @property
    def key(self) -> str:
        return f"{self.name}/{self.threads}"


@dataclass(frozen=True)
class Launched:
    values: Values
    output: str
    errors: str


def clean_environment() -> dict[str, str]:
    """What every measured program starts from, before what its allocator wants."""
    clean = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD" and not k.startswith("TERRACE_")}
    return clean | {"LC_ALL": "C", "TZ": "UTC"}


def launcher(build: Path, report: Path, subject: Subject, command: Sequence[str]) -> list[str]:
    settings = [f"{k}={v}" for k, v in subject.environment.items()]
    return [str(build / "bench" / "common" / "bench_launch"), str(report), *settings, *command]


def reported(report: Path) -> tuple[int, Values]:
    """What the launcher wrote: the exit status and the values."""
    status, seconds, cpu_seconds, peak_kib, faults = report.read_text().split()
    values = {"seconds": float(seconds), "cpu_seconds": float(cpu_seconds), "peak_rss": float(peak_kib) * 1024, "faults": float(faults)}
    return int(status), values


def ran(command: Sequence[str], *, name: str = "", timeout: float = 600, **more: Any) -> subprocess.CompletedProcess[str]:
    """A command that has to end well, on glibc; `more` is for subprocess.run."""
    name = name or command[0]
    try:
        done = subprocess.run(
            list(command), env=clean_environment(), capture_output=True, text=True, errors="replace", timeout=timeout, check=False, **more
        )
    except subprocess.TimeoutExpired as late:
        raise Failed(f"{name} took more than {timeout:.0f} s") from late
    if done.returncode != 0:
        raise Failed(f"{name} ended with {done.returncode}: {(done.stderr or done.stdout).strip()[-200:]}")
    return done


def launched(build: Path, subject: Subject, command: Sequence[str], *, cwd: Path | None = None, timeout: float = 600) -> Launched:
    """Runs a command under an allocator. The values are of the process and all its children; the peak is the largest one's."""
    with tempfile.TemporaryDirectory() as directory:
        report = Path(directory) / "report"
        start = launcher(build, report, subject, command)
        done = ran(start, name=command[0], cwd=cwd, timeout=timeout, stdin=subprocess.DEVNULL)
        status, values = reported(report)
    if status != 0:
        raise Failed(f"{command[0]} ended with {status}: {done.stderr.strip()[-200:]}")
    return Launched(values, done.stdout, done.stderr)


def answers(server: subprocess.Popen[Any], asked: Callable[[], object], seconds: float = 60) -> bool:
    """Asks until it is true, as long as the server runs. OSError: not yet."""
    deadline = time.monotonic() + seconds
    while server.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(OSError):
            if asked():
                return True
        time.sleep(0.02)
    return False


@contextlib.contextmanager
def ended(process: subprocess.Popen[Any], seconds: float = 60) -> Iterator[subprocess.Popen[Any]]:
    """It is asked to end, and killed if it does not within so many seconds."""
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as one:
        return int(one.getsockname()[1])


def self_measured(build: Path, program: str, *settings: str) -> Callable[[Subject, Path], Values]:
    """A program of ours that ends with one line of JSON; what it says of itself (the time without its start-up, say) counts."""

    def measure(subject: Subject, scratch: Path) -> Values:
        run = launched(build, subject, [str(build / "bench" / program), *settings], cwd=scratch)
        said: Values = json.loads(run.output.splitlines()[-1])
        return run.values | said

    return measure
