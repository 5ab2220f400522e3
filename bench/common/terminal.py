# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the benchmarks use of rich; without their Python packages a benchmark counts as skipped."""

import importlib.util
import io
import re
import sys

NEEDED = ("iced_x86", "jinja2", "matplotlib", "numpy", "pandas", "plotly", "psutil", "pymemcache", "redis", "rich", "scipy")

if absent := [name for name in NEEDED if importlib.util.find_spec(name) is None]:
    print(f"skipped: no {', '.join(absent)} in this Python; `terrace bench` installs them", file=sys.stderr)
    sys.exit(77)

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

__all__ = ["BarColumn", "Console", "MofNCompleteColumn", "Progress", "Table", "TextColumn", "TimeRemainingColumn", "drawn"]


def drawn(title: str, text: str) -> str:
    """A terminal with this text, as SVG."""
    width = max((len(line) for line in text.splitlines()), default=0)
    console = Console(record=True, width=max(width, 40), file=io.StringIO(), color_system=None)
    console.print(text, markup=False, highlight=False, end="")
    # The reader's own font: rich names one that would be fetched.
    return re.sub(r"\s*@font-face \{.*?\}", "", console.export_svg(title=title), flags=re.DOTALL)
