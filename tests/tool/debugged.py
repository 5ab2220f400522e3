# SPDX-License-Identifier: MIT OR Apache-2.0
"""Programs for the debugger's tests to look at: those in programs/, built once.

They run under the library.
"""

import contextlib
import io
import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import MAIN, ROOT

BUILD = ROOT / "build" / "release"
LIBRARY = BUILD / "libterrace.so"
PATIENCE = 120  # seconds, for what a loaded machine takes its time to do
GDB = ROOT / "integrations" / "gdb" / "terrace-gdb.py"
PROGRAMS = ROOT / "tests" / "tool" / "programs"


def compiled(directory: Path, *options: str, name: str = "leaks") -> Path:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    program = directory / name
    flags = ["-O1", "-g", "-fno-builtin-malloc", "-pthread"]
    command = [compiler, *flags, "-o", str(program), str(PROGRAMS / f"{name}.c"), *options]
    subprocess.run(command, check=True, capture_output=True)
    return program


def _started(
    program: Path, arguments: tuple[str, ...], variables: dict[str, str], core: Path | None
):
    def allow_core() -> None:
        resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY,) * 2)

    process = subprocess.Popen(
        [program, *arguments], env={**os.environ, **variables},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        cwd=core, preexec_fn=allow_core if core else None,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    return process


@contextlib.contextmanager
def running(
    program: Path, *arguments: object, **variables: str
) -> Iterator[subprocess.Popen[bytes]]:
    """The program when all its blocks are there; it has to end well afterwards."""
    environment = {"LD_PRELOAD": str(LIBRARY), **variables}
    process = _started(program, tuple(map(str, arguments)), environment, None)
    try:
        yield process
        process.communicate(timeout=PATIENCE)
        assert process.returncode == 0
    finally:
        process.kill()
        process.wait()


def aborted(program: Path, directory: Path, *arguments: object, **variables: str) -> Path:
    """The core file of a program that has aborted; skips where cores go elsewhere."""
    pattern = Path("/proc/sys/kernel/core_pattern").read_text(encoding="ascii").strip()
    if pattern.startswith(("|", "/")):
        pytest.skip(f"core files go to {pattern}")
    words = (*map(str, arguments), "abort")
    environment = {"LD_PRELOAD": str(LIBRARY), **variables}
    process = _started(program, words, environment, directory)
    process.communicate(timeout=PATIENCE)
    assert process.returncode == -signal.SIGABRT
    cores = list(directory.glob("core*"))
    if not cores:
        pytest.skip("the kernel writes no core file here")
    return cores[0]


def terrace(*arguments: object, **options) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-I", str(MAIN), *map(str, arguments)],
        capture_output=True, text=True, timeout=PATIENCE, check=False, **options,
    )  # fmt: skip


def said(*arguments: object) -> tuple[int, list[str]]:
    """Status and report, without starting a Python for it: that takes longer than the rest."""
    from terrace.cli import parse
    from terrace.debug.commands import run

    with contextlib.redirect_stdout(io.StringIO()) as written:
        status = run(parse(list(map(str, arguments))))
    return status, written.getvalue().splitlines()


def report(*arguments: object) -> list[str]:
    status, lines = said(*arguments)
    assert status == 0, lines
    return lines


def in_gdb(*arguments: object) -> str:
    if shutil.which("gdb") is None:
        pytest.skip("no gdb")
    done = subprocess.run(
        ["gdb", "-q", "-batch", "-nx", "-ex", f"source {GDB}", *map(str, arguments)],
        capture_output=True, text=True, timeout=PATIENCE, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    if "terrace-gdb: gdb's" in done.stdout + done.stderr:
        pytest.skip("gdb's Python has no numpy, scipy or pyelftools")
    return done.stdout + done.stderr
