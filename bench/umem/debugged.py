# SPDX-License-Identifier: MIT OR Apache-2.0
"""Programs under UMEM_DEBUG, beside the same object without it."""

import argparse
import tempfile
from pathlib import Path

import workloads as programs
from interleave import AGAIN, Subject, interleaved, median, preloaded, ratio
from report import Report
from workload import Workload

WANTED = ("sqlite-file", "sqlite-memory", "redis-requests", "redis-growing", "redis-lists")
LIMIT = 5.0
DEFAULT = "default"


def _subjects(library: Path) -> list[Subject]:
    settings = {"off": {}, "guards": {"UMEM_DEBUG": "guards"}, DEFAULT: {"UMEM_DEBUG": "default"}}
    return [preloaded(name, library, **environment) for name, environment in settings.items()]


def _one(options: argparse.Namespace, page: Report, work: Workload, subjects: list[Subject]) -> list[object]:
    with tempfile.TemporaryDirectory() as directory:
        scratch = Path(directory)
        work.prepare(scratch)
        results = interleaved(subjects, options.rounds, lambda subject: work.measure(subject, scratch))
    slower = {s.name: ratio(results, s.name, "seconds", "off") for s in subjects}
    page.check(f"{work.name}, UMEM_DEBUG=default, time over off", str(slower[DEFAULT]), f"at most {LIMIT:.0f}",
               slower[DEFAULT].median <= LIMIT)
    cells = [f"{median(results, s.name, 'seconds'):.2f} s, {slower[s.name]}" for s in subjects]
    peaks = [f"{median(results, s.name, 'peak_rss') / 2**20:.0f}" for s in subjects]
    return [work.name, *cells, str(ratio(results, AGAIN, "seconds", "off")), " / ".join(peaks)]


def run(options: argparse.Namespace, page: Report) -> None:
    page.head("UMEM_DEBUG")
    build = options.build.resolve()
    found = {w.name: w for w in programs.workloads(build)}
    present = [found[name] for name in WANTED if name in found]
    if not present:
        page.say("Not measured: neither sqlite3 nor redis is here.")
        return
    subjects = _subjects(build / "libumem_malloc.so.1")
    page.say("Programs under libumem_malloc.so, time and its ratio to the run without UMEM_DEBUG (quartiles), which comes a "
             "second time at the end of each round.")
    rows = [_one(options, page, work, subjects) for work in present[: 1 if options.smoke else None]]
    page.table(["program", *(s.name for s in subjects), "off again", "peak MiB"], rows)
