# SPDX-License-Identifier: MIT OR Apache-2.0
"""The articles' experiments on malloc and on shared pointers, each beside what the article found.

terrace bench seeds [EXPERIMENT...] [--stored] [options]      experiments: libumem index contention; default: all
--stored: nothing is measured, the report is made from the raw numbers of an earlier run
"""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "common"), str(HERE.parent / "peers")]

import contention
import index
import libumem
from page import Page
from report import arguments

EXPERIMENTS = {"libumem": libumem.run, "index": index.run, "contention": contention.run}


def main(argv: list[str]) -> int:
    chosen = [a for a in argv if a in EXPERIMENTS]
    options = arguments(__doc__, [a for a in argv if a not in EXPERIMENTS and a != "--stored"], rounds=5)
    options.stored = "--stored" in argv
    page = Page(options, "seeds", "Terrace in the experiments of three articles")
    for name in chosen or EXPERIMENTS:
        EXPERIMENTS[name](options, page)
    page.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
