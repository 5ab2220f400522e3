# SPDX-License-Identifier: MIT OR Apache-2.0
"""Which object serves malloc in each of the real programs? The dynamic linker says what it binds.

bindings.py --build BUILD [--library OBJECT] [NAME...]     runs each workload once and prints a table

A program that is linked statically, has a malloc of its own or was linked with another allocator would be compared with itself.
The program beside the allocator, "libterrace.so.0+python3", is harmless if it does not define the function (nm -D): what is
bound to it is the address of its own jump to the allocator, as in every program that is not position-independent.
"""

import argparse
import re
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / folder) for folder in ("common",)]

import workloads
from interleave import Subject, preloaded
from recipe import with_more
from workload import Failed, Workload

SYMBOLS = ("malloc", "calloc", "realloc", "free", "posix_memalign", "_Znwm", "_ZdlPv")
BINDING = re.compile(r"binding file \S+ \[\d+\] to (\S+) \[\d+\]: normal symbol `(\w+)'")
Servers = dict[str, set[str]]  # by symbol: the objects that it was bound to


def servers(lines: Iterable[str]) -> Servers:
    found: Servers = {symbol: set() for symbol in SYMBOLS}
    for line in lines:
        match = BINDING.search(line)
        if match and match[2] in found:
            found[match[2]].add(Path(match[1]).name)
    return found


def watched(workload: Workload, subject: Subject, scratch: Path) -> Servers:
    """Of the whole tree of processes; the dynamic linker writes a file for each."""
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o777)  # the program may run as somebody else
        watch = {"LD_DEBUG": "bindings", "LD_DEBUG_OUTPUT": f"{directory}/linker"}
        workload.measure(with_more(subject, watch), scratch)
        return servers(line for file in Path(directory).iterdir() for line in file.read_text(errors="replace").splitlines())


def print_table(build: Path, subject: Subject, names: list[str]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        scratch = Path(directory)
        for one in workloads.workloads(build):
            if names and one.name not in names:
                continue
            try:
                one.prepare(scratch)
                found = watched(one, subject, scratch)
                text = "; ".join(f"{symbol} {'+'.join(sorted(objects))}" for symbol, objects in found.items() if objects)
            except Failed as reason:
                text = f"failed: {reason}"
            print(f"{one.name:<26} {text or 'nothing is bound: linked statically?'}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--library", type=Path, help="default: the build's libterrace.so")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    library = (options.library or options.build / "libterrace.so").resolve()
    print_table(options.build.resolve(), preloaded("watched", library), options.names)
    sys.exit(0)
