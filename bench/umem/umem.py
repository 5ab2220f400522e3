# SPDX-License-Identifier: MIT OR Apache-2.0
"""libumem's names beside malloc's, generated code beside a table, programs under UMEM_DEBUG, and what reading a process takes.

terrace bench umem [PART...] [options]      parts: names generated debug; default: all
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "common"), str(HERE.parent / "apps")]

import debugged
import emitted
import names
from page import Page
from report import arguments

PARTS = {"names": names.run, "generated": emitted.run, "debug": debugged.run}


def main(argv: list[str]) -> int:
    chosen = [a for a in argv if a in PARTS]
    options: argparse.Namespace = arguments(__doc__, [a for a in argv if a not in PARTS], rounds=5)
    page = Page(options, "umem", "libumem's interface on Terrace")
    for name in chosen or PARTS:
        PARTS[name](options, page)
    page.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
