#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Compares what the shared objects offer with the record in this folder, by abidiff: symbols, their versions, types in public headers.

usage: abi.py --build DIR [--update]      --update writes the record of this machine's architecture anew, by abidw
"""

import argparse
import lzma
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
INCLUDE = HERE.parent.parent / "include"
LIBRARIES = ("libterrace", "libterrace-hardened", "libumem", "libumem_malloc")
SKIP = 77
COMMON = ("--no-corpus-path", "--drop-private-types", "--exported-interfaces-only", "--no-show-locs")


def record_of(library):
    return HERE / platform.machine() / f"{library}.abi.xz"


def write(built, library):
    command = ["abidw", *COMMON, "--no-comp-dir-path", "--headers-dir", INCLUDE, built / f"{library}.so"]
    text = subprocess.run(command, capture_output=True, check=True).stdout
    text = re.sub(rb"path='[^']*/src/", b"path='src/", text)  # wherever it was compiled
    record_of(library).parent.mkdir(exist_ok=True)
    record_of(library).write_bytes(lzma.compress(text, preset=9))


def difference(built, library):
    """What abidiff says, empty where nothing differs. Any difference counts: an addition is recorded, too."""
    with tempfile.NamedTemporaryFile(suffix=".abi") as record:
        record.write(lzma.decompress(record_of(library).read_bytes()))
        record.flush()
        command = ["abidiff", *COMMON, "--headers-dir2", INCLUDE, record.name, built / f"{library}.so"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr if done.returncode else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--update", action="store_true")
    options = parser.parse_args()
    if not shutil.which("abidiff"):
        print("abidiff is not there (abigail-tools)")
        return SKIP
    built = [library for library in LIBRARIES if (options.build / f"{library}.so").exists()]
    if options.update:
        for library in built:
            write(options.build, library)
        return 0
    built = [library for library in built if record_of(library).exists()]
    if not built:
        print(f"no library that has a record for {platform.machine()}")
        return SKIP
    differing = 0
    for library in built:
        found = difference(options.build, library)
        differing += bool(found)
        print(f"{library}: {found or 'as recorded'}")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
