# SPDX-License-Identifier: MIT OR Apache-2.0
"""libumem's names beside malloc's, generated code beside a table, programs under UMEM_DEBUG, and what reading a process takes.

terrace bench umem [PART...] [options]      parts: names generated debug; default: all
"""


import debugged
import emitted
import names
from report import run_parts

PARTS = {"names": names.run, "generated": emitted.run, "debug": debugged.run}


def main(argv: list[str]) -> int:
    return run_parts(__doc__, argv, PARTS, "umem", "libumem's interface on Terrace", can_store=False)
