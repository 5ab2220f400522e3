# SPDX-License-Identifier: MIT OR Apache-2.0
"""Without the benchmarks' packages they skip."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[2] / "bench" / "common"))


def pytest_sessionstart() -> None:
    try:
        import terminal  # noqa: F401
    except SystemExit:
        pytest.exit("skipped: the Python packages of the benchmarks are not here", returncode=77)
