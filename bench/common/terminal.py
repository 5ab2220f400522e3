# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the benchmarks use of rich; without it a benchmark counts as skipped."""

from __future__ import annotations

import sys

try:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
    from rich.table import Table
except ImportError:
    print("skipped: the Python packages of the benchmarks are not here; `terrace bench` installs them", file=sys.stderr)
    sys.exit(77)

__all__ = ["BarColumn", "Console", "MofNCompleteColumn", "Progress", "Table", "TextColumn", "TimeRemainingColumn"]
