# SPDX-License-Identifier: MIT OR Apache-2.0
"""The real programs of tests/preload: wall time and peak RSS beside glibc, interleaved; output must be the same."""

import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "common"))

from report import ROOT, arguments


def main(argv: list[str]) -> int:
    options = arguments(__doc__, argv, rounds=7)
    command = [
        sys.executable, str(ROOT / "tests" / "preload" / "run.py"), "--library", str(options.library),
        "--rounds", str(options.rounds), "--markdown", str(options.out / "programs.md"),
    ]
    if options.smoke:
        command += ["--only", "perl"]
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
