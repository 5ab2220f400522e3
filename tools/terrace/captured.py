# SPDX-License-Identifier: MIT OR Apache-2.0
"""Programs whose output is wanted as text."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path


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
