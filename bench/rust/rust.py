# SPDX-License-Identifier: MIT OR Apache-2.0
"""Rust programs with Terrace, mimalloc, jemalloc, snmalloc and the system's malloc as their global allocator.

terrace bench rust [PART...] [--stored] [options]      parts: workloads (by criterion) programs (ripgrep, mini-redis); default: both
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from crates import ALLOCATORS, BUILT, CRATES, SYSTEM, TERRACE, built
from interleave import AGAIN, Rounds, Subject, Values, interleaved, measured, median, ratio
from published import PROGRAMS, measured_once
from recipe import find
from report import Report, run_parts
from workload import Failed, launched

MIB = 2**20
SUBJECTS = [Subject(name) for name in ALLOCATORS]


def _workloads(build: Path, binary: Path, smoke: bool) -> Values:
    """Nanoseconds of one iteration, as criterion estimates its median."""
    seconds, warm = ("0.01", "0.01") if smoke else ("0.5", "0.2")
    with tempfile.TemporaryDirectory() as home:
        words = ["--bench", "--quiet", "--sample-size", "10", "--warm-up-time", warm, "--measurement-time", seconds]
        launched(build, Subject("", {"CRITERION_HOME": home}), [str(binary), *words])
        estimates = sorted(Path(home).glob("*/new/estimates.json"))
        return {path.parts[-3]: json.loads(path.read_text())["median"]["point_estimate"] for path in estimates}


def _rows(results: Rounds, keys: Sequence[str], unit: float) -> list[list[object]]:
    rows: list[list[object]] = []
    for key in keys:
        found = {name: median(results, name, key) for name in ALLOCATORS}
        best = min(found.keys() - {TERRACE, SYSTEM}, key=found.__getitem__)
        rows.append([key.partition("/")[0].replace("_", " "), *(f"{value / unit:,.2f}" for value in found.values()),
                     ratio(results, TERRACE, key, SYSTEM), f"{ratio(results, TERRACE, key, best)} {best}",
                     ratio(results, AGAIN, key, SYSTEM)])
    return rows


def _table(report: Report, first: str, rows: list[list[object]]) -> None:
    report.table([first, *ALLOCATORS, "terrace / system", "terrace / best other", "A/A"], rows)


def workloads(options: argparse.Namespace, report: Report) -> None:
    def measure() -> Rounds:
        binaries = {name: built(CRATES, "workloads", name, "", ("--locked", "--bench", "workloads")) for name in ALLOCATORS}
        return interleaved(SUBJECTS, options.rounds, lambda s: _workloads(options.build, binaries[s.name], options.smoke))

    results = measured(options, "rust-workloads", measure)
    report.say("Milliseconds of processor time of one iteration, medians of the rounds; ratios within the rounds (quartiles); A/A is the "
               "system's second run over its first.")
    _table(report, "workload", _rows(results, list(results[SYSTEM][0]), 1e6))


def programs(options: argparse.Namespace, report: Report) -> None:
    def measure() -> Rounds:
        for program in PROGRAMS:
            program.build()
        return interleaved(SUBJECTS, options.rounds, lambda s: {
            key: value for program in PROGRAMS for key, value in measured_once(options.build, program, s.name, options.smoke).items()})

    results = measured(options, "rust-programs", measure)
    report.say("Seconds of processor time, user and system, of one run.")
    _table(report, "program", _rows(results, [f"{program.name}/cpu" for program in PROGRAMS], 1))
    report.say("MiB of resident memory, the peak.")
    _table(report, "program", _rows(results, [f"{program.name}/peak" for program in PROGRAMS], MIB))


def main(argv: list[str]) -> int:
    BUILT.mkdir(parents=True, exist_ok=True)
    try:
        if "--stored" not in argv and (lacking := [name for name in ("cargo", "redis-benchmark") if find(name) is None]):
            raise Failed(f"not here: {', '.join(lacking)}")
        return run_parts(__doc__, argv, {"workloads": workloads, "programs": programs}, "rust", "Rust programs by global allocator")
    except Failed as failed:
        print(f"rust: {failed}", file=sys.stderr)
        return 1
