# SPDX-License-Identifier: MIT OR Apache-2.0
"""The real programs of tests/preload: wall time and peak RSS beside glibc, interleaved; output must be the same."""

import subprocess
import sys

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
