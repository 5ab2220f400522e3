#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""terrace_options of a program, in every way in which it comes to Terrace; the environment wins; what is no option is refused.

options.py --build DIR
"""

import argparse
import os
import pathlib
import shutil
import sys
import tempfile

from linking import INCLUDE, PROGRAMS, SKIP, can_link, run, ways

OPTIONS = "TERRACE_BUDGET=4M  TERRACE_PLACEMENT=none NONSENSE=1 TERRACE_DECAY_MS TERRACE_BUDGE=1 TERRACE_STATS_FILE=/nowhere/x"
REFUSED = ("NONSENSE=1", "TERRACE_DECAY_MS", "TERRACE_BUDGE=1")
SAID = [f"terrace: terrace_options {word}: no NAME=VALUE of an option; ignored" for word in REFUSED]
SAID.append("terrace: TERRACE_STATS_FILE /nowhere/x: can not be written")  # of the last option

# What is in the environment, and what the statistics then have.
EXPECTED: list[tuple[dict[str, str], tuple[str, ...]]] = [
    ({}, ('"placement":"none"', '"budget":4194304')),
    ({"TERRACE_PLACEMENT": "odd"}, ('"placement":"odd"', '"budget":4194304')),
]


def check(way: str, options: tuple[str, ...], preload: str | None, work: pathlib.Path) -> list[str]:
    """What is wrong."""
    exported = ("-rdynamic",) if preload else ()
    source = (PROGRAMS / "options.c", f'-DOPTIONS="{OPTIONS}"', f"-I{INCLUDE}")
    linked = run("cc", "-O1", "-Wall", "-Wextra", "-fPIE", *source, "-o", work / "options", *options, *exported, "-pthread", "-ldl")
    if linked.returncode != 0:
        return [f"{way}: not linked\n{linked.stderr}"]
    faults = []
    for variables, wanted in EXPECTED:
        environment = {**os.environ, **variables, **({"LD_PRELOAD": preload} if preload else {})}
        done = run(work / "options", *wanted, environment=environment)
        if done.returncode != 0 or done.stderr.splitlines() != SAID:
            faults.append(f"{way}, {variables}: {done.returncode}\n{done.stderr}")
    return faults


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    build = parser.parse_args().build.resolve()
    if shutil.which("cc") is None:
        return SKIP
    failures = []
    with tempfile.TemporaryDirectory() as directory:
        work = pathlib.Path(directory)
        (work / "empty.cpp").write_text("int main() {}\n")
        for way, options, preload in ways(build):
            options = tuple(option for option in options if option != "-static-libstdc++")
            if can_link(work, options):
                failures += check(way, options, preload, work)
    print("\n".join(failures) or "terrace_options: read in every way of linking")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
