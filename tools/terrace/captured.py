# SPDX-License-Identifier: MIT OR Apache-2.0
"""Programs whose output is wanted as text."""

import contextlib
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

from terrace.errors import TerraceError


def run_captured(
    command: Sequence[str],
    environment: Mapping[str, str] | Mapping[bytes, bytes] | None = None,
    *,
    timeout: float | None = None,
    cwd: str | Path | None = None,
    log: IO[str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Without anything to read; its status is the caller's to look at. With `log` it writes there.
    OSError when it can not be started, subprocess.TimeoutExpired when it was killed as too late."""
    return subprocess.run(
        list(command),
        stdin=subprocess.DEVNULL,
        stdout=log or subprocess.PIPE,
        stderr=subprocess.STDOUT if log else subprocess.PIPE,
        text=True,
        errors="replace",
        check=False,
        timeout=timeout,
        env=environment,
        cwd=cwd,
    )


def said(done: subprocess.CompletedProcess[str]) -> str:
    """All that it has printed."""
    return (done.stdout + done.stderr).rstrip()


@contextlib.contextmanager
def watched(
    command: Sequence[str],
    environment: Mapping[str, str] | None = None,
    cwd: str | Path | None = None,
) -> Iterator[subprocess.Popen[str]]:
    """A program whose lines, also of its errors, are read from `stdout` while it runs."""
    with subprocess.Popen(
        list(command),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=environment,
        cwd=cwd,
    ) as process:
        yield process


def run_tool(command: list[str], **options: str | None) -> str:
    """The standard output; what can not be run or fails is one TerraceError with its last lines."""
    environment = {**os.environ, "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"}
    try:
        done = run_captured(command, environment, cwd=options.get("cwd"))
    except OSError as error:
        raise TerraceError(f"{command[0]}: {error.strerror}") from error
    if done.returncode != 0:
        tail = "\n".join(said(done).splitlines()[-15:])
        raise TerraceError(f"{command[0]} failed:\n{tail}")
    return done.stdout
