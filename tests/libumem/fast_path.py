# SPDX-License-Identifier: MIT OR Apache-2.0
"""Which fast paths are on, with an item of UMEM_OPTIONS or without: read from a process that waits.

A call that takes the cold way gives the same results, only slower, so no program can tell by itself.
"""

import argparse
import os
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
LIMITS = ("size_limit", "subline_limit", "below_page_limit", "extent_16ths")  # as FastPath begins
FAST, SLOW, SIZES_APART = (True,) * 4, (False,) * 4, (True, True, False, True)
EXPECTED = [  # UMEM_OPTIONS, UMEM_DEBUG: which limits are set
    ("", "", FAST),
    ("size_add=72", "", SIZES_APART),
    ("size_remove=64", "", SIZES_APART),
    ("size_clear", "", SIZES_APART),
    ("nomagazines", "", SLOW),
    ("size_add=72", "guards", SLOW),
]


def _offset(library: Path) -> int:
    symbols = subprocess.run(["nm", "-C", library], capture_output=True, text=True, check=True)
    line = next(s for s in symbols.stdout.splitlines() if s.endswith(" terrace::heap::fast_path"))
    return int(line.split()[0], 16)


def _limits(program: Path, library: Path, options: str, debug: str) -> tuple[bool, ...]:
    environment = {**os.environ, "UMEM_OPTIONS": options, "UMEM_DEBUG": debug}
    with subprocess.Popen(
        [program], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()
        maps = Path(f"/proc/{process.pid}/maps").read_text(encoding="utf-8").splitlines()
        base = min(int(m.split("-")[0], 16) for m in maps if library.resolve().name in m)
        with Path(f"/proc/{process.pid}/mem").open("rb", 0) as memory:
            memory.seek(base + _offset(library))
            words = struct.unpack("<4Q", memory.read(32))
        process.stdin.close()
    if process.returncode != 0:
        sys.exit(f"{options} {debug}: ends with {process.returncode}")
    return tuple(w != 0 for w in words)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--libraries", type=Path, required=True)
    parser.add_argument("--include", type=Path, required=True)
    arguments = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as scratch:
        for name in ("umem", "umem_malloc"):
            library = arguments.libraries / f"lib{name}.so"
            program = Path(scratch) / name
            subprocess.run(
                [
                    *("cc", "-O1", f"-I{arguments.include}", str(HERE / "waits.c")),
                    *("-o", program, f"-L{arguments.libraries}", f"-l{name}"),
                    f"-Wl,-rpath,{arguments.libraries.resolve()}",
                ],
                check=True,
            )
            for options, debug, expected in EXPECTED:
                found = _limits(program, library, options, debug)
                good = found == expected
                failed += not good
                said = " ".join(n for n, is_set in zip(LIMITS, found, strict=True) if is_set)
                print(f"{'ok' if good else 'FAILED':7} {name} '{options}' '{debug}': {said}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
