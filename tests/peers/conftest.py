# SPDX-License-Identifier: MIT OR Apache-2.0
"""The modules of the peers are where their driver finds them; without rich they skip."""

import importlib.util
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parents[2] / "bench"
sys.path[:0] = [str(BENCH / "peers"), str(BENCH / "common")]


def pytest_sessionstart() -> None:
    if importlib.util.find_spec("rich") is None:
        pytest.exit("skipped: there is no rich", returncode=77)
