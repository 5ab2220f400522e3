# SPDX-License-Identifier: MIT OR Apache-2.0
"""drive.py DRIVER.py ARGUMENT...: a benchmark as `terrace bench` runs it, but nothing is installed or built; for ctest."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "tools"))

from terrace.bench import load_driver

sys.exit(load_driver(Path(sys.argv[1])).main(sys.argv[2:]))
