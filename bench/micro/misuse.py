# SPDX-License-Identifier: MIT OR Apache-2.0
"""Time and memory of the levels of checking, beside glibc, mimalloc's secure build and scudo as far as they are installed."""

import argparse
import glob
import platform
import tempfile
from pathlib import Path

from interleave import AGAIN, Subject, Values, glibc, interleaved, measured, median, preloaded, ratio
from report import Report, arguments
from workload import self_measured

PROGRAMS = ("larson", "sh6", "alloc_test", "calloc_realloc", "large", "handover")
SCUDO = "/usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.scudo_standalone-{}.so"  # package libclang-rt-14-dev, or a newer one


def _subjects(library: Path, mimalloc: Path | None) -> list[Subject]:
    hardened = library.with_name("libterrace-hardened.so")
    found = [
        glibc(),
        preloaded("default", library),
        preloaded("check", library, TERRACE_CHECK="1"),
        preloaded("check, no samples", library, TERRACE_CHECK="1,sample:0"),
        preloaded("hardened", hardened),
        preloaded("hardened, thread", hardened, TERRACE_RUNG="thread"),
    ]
    if mimalloc is not None:
        found.append(preloaded("mimalloc secure", mimalloc))
    if scudo := sorted(glob.glob(SCUDO.format(platform.machine()))):
        found.append(preloaded("scudo", Path(scudo[-1])))
    return found


def _shown(key: str, value: float) -> str:
    return f"{value:.2f} s" if key == "seconds" else f"{value / 2**20:.0f} MiB"


def main(argv: list[str]) -> int:
    own = argparse.ArgumentParser(add_help=False)
    own.add_argument("--mimalloc-secure", type=Path)
    known, rest = own.parse_known_args(argv)
    options = arguments(f"{__doc__} --mimalloc-secure PATH: its library.", rest, rounds=5)
    scale = 0.001 if options.smoke else 0.03
    subjects = _subjects(options.library, known.mimalloc_secure)
    report = Report("misuse", options.out)
    report.say("Time of fixed work and peak of resident memory / glibc, median of the rounds (quartiles), one thread and two.")
    rows: dict[str, list[list[object]]] = {"seconds": [], "peak_rss": []}
    for program in PROGRAMS:
        for threads in (1, 2):
            alone = self_measured(options.build, "micro/bench_micro", program, f"threads={threads}", f"work={scale}", "settled=0")

            def measure(subject: Subject, alone=alone) -> Values:  # type: ignore[no-untyped-def]
                with tempfile.TemporaryDirectory() as scratch:
                    return alone(subject, Path(scratch))

            name = f"misuse_{program}_{threads}"
            results = measured(options, name, lambda measure=measure: interleaved(subjects, options.rounds, measure))  # type: ignore[misc]
            for key, table in rows.items():
                others = [ratio(results, s.name, key, "glibc") for s in subjects[1:]]
                table.append([f"{program}, {threads}", _shown(key, median(results, "glibc", key)), *others,
                              ratio(results, AGAIN, key, "glibc")])
    names = [s.name for s in subjects[1:]]
    report.table(["time", "glibc", *names, "A/A"], rows["seconds"])
    report.table(["peak resident", "glibc", *names, "A/A"], rows["peak_rss"])
    report.close()
    return 0
