# SPDX-License-Identifier: MIT OR Apache-2.0
"""The articles' experiments on malloc and on shared pointers, each beside what the article found.

terrace bench seeds [EXPERIMENT...] [--stored] [options]      experiments: libumem index contention; default: all
--stored: nothing is measured, the report is made from the raw numbers of an earlier run
"""


import contention
import index
import libumem
from report import run_parts

EXPERIMENTS = {"libumem": libumem.run, "index": index.run, "contention": contention.run}


def main(argv: list[str]) -> int:
    return run_parts(__doc__, argv, EXPERIMENTS, "seeds", "Terrace in the experiments of three articles")
