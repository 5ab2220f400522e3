# SPDX-License-Identifier: MIT OR Apache-2.0
"""Programs whose output is wanted as text."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from terrace.errors import TerraceError


def run_captured(
    command: Sequence[str],
    environment: Mapping[str, str],
    *,
    timeout: float | None = None,
    cwd: str | Path | None = None,
) -> subprocess.CompletedProcess[str]:
    """Without anything to read; its status is the caller's to look at.
    OSError when it can not be started, subprocess.TimeoutExpired when it was killed as too late."""
    return subprocess.run(
        list(command),
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        stdin=subprocess.DEVNULL,
        timeout=timeout,
        env=dict(environment),
        cwd=cwd,
    )


def run_tool(command: list[str], **options: str | None) -> str:
    """The standard output; what can not be run or fails is one TerraceError with its last lines."""
    environment = {**os.environ, "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"}
    try:
        done = run_captured(command, environment, cwd=options.get("cwd"))
    except OSError as error:
        raise TerraceError(f"{command[0]}: {error.strerror}") from error
    if done.returncode != 0:
        tail = "\n".join((done.stdout + done.stderr).splitlines()[-15:])
        raise TerraceError(f"{command[0]} failed:\n{tail}")
    return done.stdout
