# SPDX-License-Identifier: MIT OR Apache-2.0
"""The modules of the peers are where their driver finds them; without the benchmarks' packages they skip."""

import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parents[2] / "bench"
sys.path[:0] = [str(BENCH / "peers"), str(BENCH / "common")]


def pytest_sessionstart() -> None:
    try:
        import terminal  # noqa: F401
    except SystemExit:
        pytest.exit("skipped: the Python packages of the benchmarks are not here", returncode=77)
