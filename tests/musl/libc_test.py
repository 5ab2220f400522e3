# SPDX-License-Identifier: MIT OR Apache-2.0
"""musl's own test suite, libc-test, on musl's malloc and on Terrace's: each program must end alike.

libc_test.py --build BUILD --scratch FOLDER [--all]    status 77 where it can not be fetched

The sources come with a Go module of a fixed version, whose tests they are, too.
"""

import argparse
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

MODULE = "modernc.org/libc@v1.81.0"
SKIPPED = 77
SECONDS = 60  # of one program; upstream's 5 are few on a busy machine
# The other folders test headers, arithmetic and functions inside musl.
PARTS = ("functional", "regression")
ALL = "*/*"
# Those that allocate, start threads or processes, or have thread-local storage.
ALLOCATING = (
    "functional/popen functional/pthread_c* functional/pthread_tsd functional/search_* "
    "functional/spawn functional/tls_* regression/daemon-failure regression/*malloc* "
    "regression/*-oom regression/pthread_*cancel* regression/pthread_exit-* regression/tls_*"
)
LEFT_OUT = (
    "flockfile-list",  # has a malloc of its own
    # A child that is forked while its thread waits for the last signals gets none, and spins.
    "raise-race",
)
# Objects for dlopen get no allocator of their own: a process has one.
COMPILER = """#!/bin/sh
case " $* " in
  *" -c "* | *" -shared "*) exec musl-gcc "$@" ;;
  *) exec musl-gcc "$@" {more} ;;
esac
"""
FLAGS = "-std=c99 -D_POSIX_C_SOURCE=200809L -O1 -w -fno-builtin -frounding-math"


def skip(why: str) -> None:
    print(f"skipped: {why}")
    sys.exit(SKIPPED)


def fetched(scratch: Path) -> Path:
    """The suite's folder; ends the process where there is none."""
    if shutil.which("go") is None:
        skip("there is no go, which fetches libc-test")
    environment = {**os.environ, "GOMODCACHE": str(scratch / "modules"), "GOFLAGS": "-modcacherw"}
    done = subprocess.run(
        ["go", "mod", "download", "-json", MODULE],
        cwd=scratch,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        skip(f"go can not fetch {MODULE}")
    return Path(json.loads(done.stdout)["Dir"]) / "testdata" / "nsz.repo.hu" / "libc-test"


def make(folder: Path, *words: str) -> None:
    """Ends what a program that was killed has left behind, too."""
    with subprocess.Popen(
        ["make", "-k", "-s", *words],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        try:
            process.wait()
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def result(program: Path) -> str:
    """Why it failed; nothing where it passes."""
    said = program.with_suffix(".err")
    if not said.exists():
        return "was not run"
    failed = [
        line for line in said.read_text(errors="replace").splitlines() if line.startswith("FAIL")
    ]
    return failed[0].rpartition("[")[2].rstrip("]") if failed else ""


def run(sources: Path, folder: Path, chosen: str, more: str) -> dict[str, str]:
    """Program -> its result. `more` are words for the linking of programs."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(sources, folder)
    compiler = folder / "compiler"
    compiler.write_text(COMPILER.format(more=more))
    compiler.chmod(0o755)
    # Upstream's configuration links libraries that musl does not have.
    (folder / "config.mak").write_text(f"CFLAGS += {FLAGS}\n")
    wanted = {file for part in chosen.split() for file in (folder / "src").glob(f"{part}.c")}
    for part in PARTS:
        for file in (folder / "src" / part).glob("*.c"):
            if (file not in wanted and not file.stem.endswith("_dso")) or file.stem in LEFT_OUT:
                file.unlink()
    make(
        folder,
        f"CC={compiler}",
        f"RUN_TEST=src/common/runtest.exe -t {SECONDS} -w ''",
        *(f"src/{part}/REPORT" for part in PARTS),
    )
    return {
        f"{part}/{program.stem}": result(program)
        for part in PARTS
        for program in sorted((folder / "src" / part).glob("*.exe"))
    }


def has_terrace(program: Path) -> bool:
    done = subprocess.run(["nm", str(program)], capture_output=True, text=True, check=False)
    return "_ZN7terrace" in done.stdout


def compared(musl: dict[str, str], terrace: dict[str, str]) -> int:
    """Says each difference; how many there are."""
    different = 0
    for name in sorted(musl.keys() | terrace.keys()):
        ends = [results.get(name, "is not built") or "passes" for results in (musl, terrace)]
        if ends[0] != ends[1]:
            print(f"{name}: {ends[0]} on musl's malloc, {ends[1]} on Terrace's")
            different += 1
    return different


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--build", type=Path, required=True, help="of the preset musl")
    parser.add_argument("--scratch", type=Path, required=True)
    parser.add_argument(
        "--all",
        dest="programs",
        action="store_const",
        const=ALL,
        default=ALLOCATING,
        help="not only the programs that allocate",
    )
    options = parser.parse_args()
    options.scratch.mkdir(parents=True, exist_ok=True)
    scratch = options.scratch.resolve()
    sources = fetched(scratch)
    library = options.build.resolve() / "libterrace.a"
    musl = run(sources, scratch / "musl", options.programs, "")
    terrace = run(sources, scratch / "terrace", options.programs, f"-Wl,-u,malloc {library}")
    without = [n for n in terrace if not has_terrace(scratch / "terrace" / "src" / f"{n}.exe")]
    for name in without:
        print(f"{name}: linked without Terrace")
    different = compared(musl, terrace)
    passed = sum(not end for end in musl.values())
    print(f"{passed} of {len(musl)} pass on musl's malloc, {different} end otherwise on Terrace's")
    return int(bool(different or without) or not passed)


if __name__ == "__main__":
    sys.exit(main())
