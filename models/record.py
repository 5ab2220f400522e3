# SPDX-License-Identifier: MIT OR Apache-2.0
"""Which rows were searched in full, and as what: verified.txt has a fingerprint for each row.

A row's fingerprint covers the model with the files that it includes, the row's own line in check.py, and the sources that the
model describes; comments and spacing do not count. While it is the recorded one, a bounded search is enough (check.py
--if-changed); otherwise somebody has changed the model, or the code that it has to describe.
"""
import hashlib
import re
from pathlib import Path

HERE = Path(__file__).resolve().parent
FILE = "verified.txt"
HEAD = """# SPDX-License-Identifier: MIT OR Apache-2.0
# Rows of check.py that were searched in full, with a fingerprint of the model, the row and the sources; written by check.py --record.
"""

# What each model describes; paths from the root of the tree.
SOURCES = {
    "stop_slot": ("src/arch/word.h", "src/arch/sequences.h", "src/percpu/stop_slot.cpp"),
    "refill": ("src/heap/levels/block_levels.cpp", "src/level/depot.h", "src/level/depot.cpp"),
    "lab_refill": ("src/lab/heap.h", "src/lab/cas.cpp", "src/lab/restartable.cpp", "src/lab/drain.cpp"),
}


def essence(text):
    """C or Promela without comments, and each run of white space as one space."""
    return " ".join(re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.S).split())


def model_files(path):
    """The model and what it includes, in the order of inclusion."""
    files = [path]
    for name in re.findall(r'^#include "(.*)"', path.read_text(encoding="utf-8"), re.M):
        files += model_files(path.with_name(name))
    return files


def fingerprint(row, here=HERE, sources=None):
    """`row` with the names of check.Row; 16 hexadecimal digits."""
    described = (SOURCES if sources is None else sources)[row.model]
    files = model_files(here / f"{row.model}.pml") + [here.parent / name for name in described]
    way = (row.flags, row.right, row.live, row.whole, row.collapse, row.depth)
    parts = [repr(way), *(essence(file.read_text(encoding="utf-8")) for file in files)]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def read(here=HERE):
    """Row -> fingerprint; empty when nothing is recorded."""
    try:
        lines = (here / FILE).read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return {}
    return dict(line.split() for line in lines if line and not line.startswith("#"))


def write(verified, order, here=HERE):
    """Adds what was verified now; rows that are no more in `order` go."""
    known = {**read(here), **verified}
    lines = [f"{name:24}{known[name]}\n" for name in order if name in known]
    (here / FILE).write_text(HEAD + "".join(lines), encoding="utf-8")
