# SPDX-License-Identifier: MIT OR Apache-2.0
"""Several heaps in one process: every pair of our objects in both orders, preloaded, linked, by dlopen, and beside the archive
in the program; and all of them. On every rung."""

import argparse
import itertools
import os
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = Path(__file__).resolve().parent / "heaps" / "heaps.c"
OBJECTS = ["libterrace.so", "libterrace-hardened.so", "libumem.so", "libumem_malloc.so"]
RUNGS = ["mm_cid", "cpu_id", "getcpu", "thread"]


class Builder:
    def __init__(self, libraries: Path, scratch: Path):
        self.libraries = libraries
        self.scratch = scratch

    def program(self, *libraries: str) -> Path:
        """Linked to them in this order; libterrace.a is the program's own heap."""
        binary = self.scratch / "-".join(["heaps", *libraries])
        if not binary.exists():
            subprocess.run(
                [
                    *("cc", "-O1", "-g", "-Wall", "-fno-builtin", "-pthread", str(SOURCE), "-o", str(binary)),
                    *("-Wl,--no-as-needed", f"-L{self.libraries}", f"-Wl,-rpath,{self.libraries}"),
                    *(f"-l:{library}" for library in libraries),
                    "-ldl",
                ],
                check=True,
            )
        return binary

    def path(self, library: str) -> str:
        return "program" if library == "libterrace.a" else str(self.libraries / library)


def _ways(builder: Builder):
    """What it is, the program, what is preloaded, and the heaps in the order in which they are used."""
    plain = builder.program()
    objects = [o for o in OBJECTS if (builder.libraries / o).exists()]  # a build may have no hardened one
    for pair in itertools.permutations(objects, 2):
        yield "preloaded", plain, pair, pair
        yield "linked", builder.program(*pair), (), pair
        yield "preloaded and linked", builder.program(pair[1]), pair[:1], pair
        yield "preloaded and linked", builder.program(pair[0]), pair[1:], pair
        yield "by dlopen", plain, (), pair
    for other in objects:
        for pair in itertools.permutations(["libterrace.a", other]):
            yield "beside a preloaded one", builder.program("libterrace.a"), (other,), pair
            yield "linked", builder.program(*pair), (), pair
            yield "by dlopen", builder.program("libterrace.a"), (), pair
    everything = ("libterrace.a", *objects)
    yield "linked", builder.program(*everything), (), everything
    yield "by dlopen", builder.program("libterrace.a"), (), everything


def _run(builder: Builder, program: Path, preloaded: tuple, heaps: tuple, rung: str) -> str | None:
    """What is wrong; None: nothing."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("UMEM_", "TERRACE_", "LD_PRELOAD"))}
    environment["TERRACE_RUNG"] = rung
    if preloaded:
        environment["LD_PRELOAD"] = " ".join(builder.path(library) for library in preloaded)
    done = subprocess.run(
        [str(program), *(builder.path(heap) for heap in heaps)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return None if done.returncode == 0 else f"ends with {done.returncode}\n{done.stdout}{done.stderr}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--libraries", type=Path, required=True)
    parser.add_argument("--rung", choices=RUNGS, action="append", help="default: all")
    arguments = parser.parse_args()
    failed = runs = 0
    with tempfile.TemporaryDirectory() as scratch:
        builder = Builder(arguments.libraries.resolve(), Path(scratch))
        for way, program, preloaded, heaps in _ways(builder):
            for rung in arguments.rung or RUNGS:
                wrong = _run(builder, program, preloaded, heaps, rung)
                runs += 1
                if wrong is not None:
                    failed += 1
                    print(f"{' and '.join(heaps)}, {way}, {rung}: {wrong}")
    print(f"{runs} runs, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
