# SPDX-License-Identifier: MIT OR Apache-2.0
"""Local allocation buffers: the experiments of two papers, on a simulated young space.

terrace bench lab [EXPERIMENT...] [--stored] [options]      experiments: hab objects busy bursty statistics end; default: all
--stored: nothing is measured, the report is made from the raw numbers of an earlier run
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parent.parent / "common")]

import hab
import mprcs
from page import Page
from report import arguments

EXPERIMENTS = {
    "hab": hab.run,
    "objects": mprcs.objects,
    "busy": mprcs.busy,
    "bursty": mprcs.bursty,
    "statistics": mprcs.statistics,
    "end": mprcs.end,
}


def main(argv: list[str]) -> int:
    chosen = [a for a in argv if a in EXPERIMENTS]
    options = arguments(__doc__, [a for a in argv if a not in EXPERIMENTS and a != "--stored"], rounds=5)
    options.stored = "--stored" in argv
    page = Page(options, "lab", "Local allocation buffers: the experiments of two papers")
    for name in chosen or EXPERIMENTS:
        EXPERIMENTS[name](options, page)
    page.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
