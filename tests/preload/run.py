#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Real programs with the library preloaded: same output and exit status as without, and what it costs.

run.py --library PATH [--rounds N] [--only NAME,...] [--markdown FILE]

Runs with and without alternate within each round; ratios are taken per round, and their median and quartiles printed. Peak RSS is that of
the largest process of the tree. Fails on a difference, never on a time.
"""

import argparse
import hashlib
import math
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass

from programs import PROGRAMS, Program

SKIP = 77
LAUNCH = pathlib.Path(__file__).resolve().parents[2] / "bench" / "common" / "launch.c"
TIMEOUT_SECONDS = 600


@dataclass
class Run:
    status: int
    output: str
    artefacts: list[str]
    seconds: float
    peak_kib: int


def run_once(program: Program, scratch: pathlib.Path, library: str | None) -> Run:
    program.repeat(scratch)
    preload = [f"LD_PRELOAD={library}"] if library else []
    command = [str(scratch / "launch"), "report", *preload, *program.command(scratch)]
    environment = {**os.environ, "LC_ALL": "C", "TZ": "UTC"}
    with open(scratch / "output", "wb") as out, open(scratch / "errors", "wb") as errors:
        subprocess.run(command, cwd=scratch, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=errors, check=True,
                       timeout=TIMEOUT_SECONDS)
    status, seconds, _, peak_kib, _ = (scratch / "report").read_text().split()
    output = program.normalise((scratch / "output").read_text(errors="replace"))
    digests = [hashlib.sha256((scratch / a).read_bytes()).hexdigest() for a in program.artefacts]
    return Run(int(status), output, digests, float(seconds), int(peak_kib))


def difference(plain: Run, ours: Run) -> str:
    if ours.status != plain.status:
        return f"exit status {ours.status} instead of {plain.status}"
    if ours.output != plain.output:
        return f"output differs:\n--- without\n{plain.output[-2000:]}\n--- with\n{ours.output[-2000:]}"
    if ours.artefacts != plain.artefacts:
        return "files written differ"
    return ""


def spread(values: list[float]) -> str:
    if len(values) < 3:
        return f"{statistics.median(values):.3f}"
    q1, q2, q3 = statistics.quantiles(values, n=4)
    return f"{q2:.3f} ({q1:.3f}-{q3:.3f})"


def geometric_mean(values: list[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))


def table(rows: list[tuple[str, list[Run], list[Run]]]) -> str:
    lines = ["| program | wall, glibc | wall, ratio | peak RSS, glibc | peak RSS, ratio |", "|---|---|---|---|---|"]
    times, peaks = [], []
    for name, plain, ours in rows:
        time_ratios = [o.seconds / p.seconds for p, o in zip(plain, ours)]
        peak_ratios = [o.peak_kib / p.peak_kib for p, o in zip(plain, ours)]
        times.append(statistics.median(time_ratios))
        peaks.append(statistics.median(peak_ratios))
        lines.append(f"| {name} | {statistics.median(p.seconds for p in plain):.2f} s | {spread(time_ratios)} | "
                     f"{statistics.median(p.peak_kib for p in plain) / 1024:.1f} MiB | {spread(peak_ratios)} |")
    lines.append(f"| geometric mean | | {geometric_mean(times):.3f} | | {geometric_mean(peaks):.3f} |")
    return "\n".join(lines)


def measure(program: Program, library: str, rounds: int) -> tuple[list[Run], list[Run], str]:
    with tempfile.TemporaryDirectory() as directory:
        scratch = pathlib.Path(directory)
        subprocess.run(["cc", "-O1", "-o", scratch / "launch", LAUNCH], check=True)
        program.prepare(scratch)
        plain: list[Run] = []
        ours: list[Run] = []
        for i in range(rounds):
            for library_or_none in ((None, library) if i % 2 == 0 else (library, None)):
                (plain if library_or_none is None else ours).append(run_once(program, scratch, library_or_none))
            if problem := difference(plain[-1], ours[-1]):
                errors = (scratch / "errors").read_text(errors="replace")[-2000:]
                return plain, ours, f"{problem}\n--- standard error of the last run\n{errors}"
        return plain, ours, ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", default="build/release/libterrace.so")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="")
    parser.add_argument("--markdown", type=pathlib.Path)
    arguments = parser.parse_args()
    library = os.path.realpath(arguments.library)
    wanted = set(filter(None, arguments.only.split(",")))
    rows, failed, skipped = [], 0, 0
    for program in PROGRAMS:
        if wanted and program.name not in wanted:
            continue
        if missing := [c for c in program.needs if shutil.which(c) is None]:
            print(f"{program.name}: skipped, no {', '.join(missing)}", flush=True)
            skipped += 1
            continue
        plain, ours, problem = measure(program, library, arguments.rounds)
        if problem:
            failed += 1
            print(f"{program.name}: FAILED: {problem}", flush=True)
        else:
            rows.append((program.name, plain, ours))
            print(f"{program.name}: same output and status, {len(ours)} rounds", flush=True)
    if rows:
        text = table(rows)
        print(text)
        if arguments.markdown:
            arguments.markdown.write_text(text + "\n")
    return 1 if failed else (SKIP if skipped and not rows else 0)


if __name__ == "__main__":
    sys.exit(main())
