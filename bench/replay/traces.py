# SPDX-License-Identifier: MIT OR Apache-2.0
"""Recorded programs, replayed: time and memory of their calls of malloc beside glibc."""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from interleave import AGAIN, Rounds, Subject, glibc, interleaved, measured, median, preloaded, ratio
from report import Report, arguments
from workload import Failed, Workload
from workloads import missing, workloads

SMOKE_SCALE = 0.01
SMOKE_TRACES = ("trace-perl", "trace-python-queues")  # one thread, several
MIB = 1 << 20


def _row(key: str, results: Rounds) -> list[object]:
    seconds, operations = (median(results, "terrace", k) for k in ("seconds", "operations"))
    return [
        key,
        f"{1e9 * seconds / operations:.1f}",
        *(ratio(results, "terrace", k, "glibc") for k in ("seconds", "peak_rss", "settled_rss")),
        f"{median(results, 'terrace', 'peak_rss') / MIB:.1f}",
        ratio(results, AGAIN, "seconds", "glibc"),
    ]


def _measured(options: argparse.Namespace, workload: Workload, subjects: Sequence[Subject]) -> Rounds:
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        workload.prepare(scratch)
        return measured(options, workload.name, lambda: interleaved(subjects, options.rounds, lambda s: workload.measure(s, scratch)))


def main(argv: list[str]) -> int:
    options = arguments(__doc__, argv, rounds=5)
    found = workloads(options.build, SMOKE_SCALE) if options.smoke else workloads(options.build)
    if options.smoke:
        found = [w for w in found if w.name in SMOKE_TRACES]
    if not found:
        print("skipped: none of the programs is here", file=sys.stderr)
        return 77
    subjects = [glibc(), preloaded("terrace", options.library)]
    report = Report("traces", options.out)
    report.say("Replayed traces of real programs, terrace / glibc, median of the rounds (quartiles). A/A is glibc / glibc.")
    failures = missing()
    rows: list[list[object]] = []
    status = 0
    for workload in found:
        try:
            results = _measured(options, workload, subjects)
        except Failed as failure:
            failures.append(f"{workload.name}: {failure}")
            status = 1
            continue
        rows.append(_row(workload.key, results))
    report.table(["trace/threads", "ns/call", "time", "peak", "settled", "peak MiB", "A/A time"], rows)
    for line in failures:
        report.say(line)
    report.close()
    return status
