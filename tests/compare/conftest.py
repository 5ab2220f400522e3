# SPDX-License-Identifier: MIT OR Apache-2.0
"""The modules of the comparison are where its driver finds them; without the benchmarks' packages they skip."""

import made_up  # noqa: F401  (sets the path)
import pytest


def pytest_sessionstart() -> None:
    try:
        import terminal  # noqa: F401
    except SystemExit:
        pytest.exit("skipped: the Python packages of the benchmarks are not here", returncode=77)
