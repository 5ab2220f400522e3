# SPDX-License-Identifier: MIT OR Apache-2.0
"""Local allocation buffers: the experiments of two papers, on a simulated young space.

terrace bench lab [EXPERIMENT...] [--stored] [options]      experiments: hab objects busy bursty statistics end; default: all
--stored: nothing is measured, the report is made from the raw numbers of an earlier run
"""


import hab
import mprcs
from report import run_parts

EXPERIMENTS = {
    "hab": hab.run,
    "objects": mprcs.objects,
    "busy": mprcs.busy,
    "bursty": mprcs.bursty,
    "statistics": mprcs.statistics,
    "end": mprcs.end,
}


def main(argv: list[str]) -> int:
    return run_parts(__doc__, argv, EXPERIMENTS, "lab", "Local allocation buffers: the experiments of two papers")
