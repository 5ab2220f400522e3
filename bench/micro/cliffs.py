# SPDX-License-Identifier: MIT OR Apache-2.0
"""Where the cost of an allocator may jump: large blocks, many free ones, many threads; beside glibc and peers."""

import json
import statistics
from pathlib import Path

from allocators import distributed
from interleave import AGAIN, Rounds, Subject, Values, glibc, interleaved, measured, median, preloaded, ratio, run
from report import Report, arguments

MILLISECONDS = 100
SETTLE = 3000  # milliseconds of little use after all was freed
TARGET = 1.3
# Cases whose memory is worth a look: those that touch it.
MEMORY = ("touched", "1 GiB", "64 threads")


def _subjects(library: Path) -> list[Subject]:
    return [glibc(), preloaded("terrace", library), *distributed()]


def _case(subject: Subject, program: Path, name: str, *settings: str) -> Values:
    values: Values = json.loads(run(subject, [str(program), name, *settings]).splitlines()[-1])
    return values


def _measure(subject: Subject, program: Path, names: list[str], milliseconds: int) -> Values:
    return {name: _case(subject, program, name, str(milliseconds))["ns"] for name in names}


def _best(results: Rounds, names: list[str], case: str) -> str:
    return min(names, key=lambda name: median(results, name, case))


def _time_rows(results: Rounds, peers: list[str], names: list[str]) -> list[list[object]]:
    rows: list[list[object]] = []
    for name in names:
        best = _best(results, peers, name)
        over = ratio(results, "terrace", name, best)
        rows.append([name, *(f"{median(results, s, name):,.1f}" for s in [*peers, "terrace"]), best, over,
                     ratio(results, AGAIN, name, "glibc"), "" if over.median <= TARGET else "*"])
    return rows


def _memory_rows(subjects: list[Subject], program: Path, names: list[str], rounds: int, settings: tuple[str, str]) -> list[list[object]]:
    def mib(values: list[Values], key: str) -> str:
        return f"{statistics.median(v[key] for v in values) / 2**20:,.1f}"

    rows: list[list[object]] = []
    for name in names:
        row: list[object] = [name]
        for subject in subjects:
            values = [_case(subject, program, name, *settings) for _ in range(rounds)]
            row.append(f"{mib(values, 'peak_rss')} / {mib(values, 'settled_rss')}")
        rows.append(row)
    return rows


def main(argv: list[str]) -> int:
    options = arguments(__doc__, argv, rounds=9)
    program = options.build / "bench" / "micro" / "bench_cliffs"
    milliseconds = 1 if options.smoke else MILLISECONDS
    subjects = _subjects(options.library)
    names = run(glibc(), [str(program)]).splitlines()
    if options.smoke:
        subjects = subjects[:2]
        names = [n for n in names if "GiB" not in n and "beside" not in n]  # gigabytes
    peers = [s.name for s in subjects if s.name != "terrace"]
    results = measured(options, "cliffs", lambda: interleaved(subjects, options.rounds, lambda s: _measure(s, program, names, milliseconds)))

    report = Report("cliffs", options.out)
    report.say("Nanoseconds per operation (CPU time; with several threads, time), medians of the rounds; terrace / the best of the "
               f"others, median of the ratios within the rounds (quartiles); A/A is glibc / glibc. A star: more than {TARGET}.")
    report.table(["case", *peers, "terrace", "best", "ratio", "A/A", ""], _time_rows(results, peers, names))
    report.say(f"Resident memory in MiB: peak / {SETTLE / 1000:g} s after all was freed, with a pair of malloc and free each 10 ms.")
    chosen = [n for n in names if any(word in n for word in MEMORY)]
    rounds, settle = (1, 10) if options.smoke else (3, SETTLE)
    report.table(["case", *(s.name for s in subjects)], _memory_rows(subjects, program, chosen, rounds, (str(milliseconds), str(settle))))
    report.close()
    return 0
