# SPDX-License-Identifier: MIT OR Apache-2.0
"""md5 sums in node, where the article began: objects of C++ that belong to garbage-collected ones."""

import argparse
import json
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from interleave import AGAIN, Rounds, Subject, Values, interleaved, measured, median, names, preloaded, ratio
from interleave import run as run_program
from report import Report

SCRIPT = Path(__file__).resolve().parent / "md5.js"
ARTICLE = {"libc": 110, "libumem, 64 MB per thread": 78}  # seconds
BUDGET = "terrace, budget 64M"
CAP = "libumem, 64 MB"


def _measure(node: str, hashes: int, subject: Subject) -> Values:
    said = json.loads(run_program(subject, [node, str(SCRIPT), str(hashes)]))
    return {"ns_per_hash": said["ns_per_hash"]}


def _statistics(node: str, hashes: int, subject: Subject) -> Values:
    """A run of its own under terrace, whose statistics say how blocks came and went."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "statistics"
        run_program(Subject(subject.name, {**subject.environment, "TERRACE_STATS_FILE": str(path)}), [node, str(SCRIPT), str(hashes)])
        levels = {level["level"]: level["values"] for level in json.loads(path.read_text())["levels"]}
    return {"allocations": levels["core"]["allocations"] / hashes, "slabs": levels["global"]["allocations"] / hashes}


def _all(options: argparse.Namespace, node: str, present: Sequence[Subject]) -> Rounds:
    hashes = 2000 if options.smoke else 1_000_000
    larger = [preloaded(BUDGET, options.library, TERRACE_BUDGET="64M")] if any(s.name == "terrace" for s in present) else []
    umem = [s for s in present if s.name == "libumem"]
    larger += [Subject(CAP, {**s.environment, "UMEM_OPTIONS": "perthread_cache=64m"}) for s in umem]
    subjects = [*present, *larger]
    results = interleaved(subjects, options.rounds, lambda s: _measure(node, hashes, s))
    for subject in subjects:
        if subject.name.startswith("terrace"):
            results[subject.name][0] |= _statistics(node, hashes, subject)
    return results


def run(options: argparse.Namespace, page: Report, present: Sequence[Subject]) -> None:
    node = shutil.which("node")
    if node is None and not options.stored:
        page.say("md5 sums in node: not run, there is no node.")
        return
    results = measured(options, "seeds-md5", lambda: _all(options, str(node), present))
    page.say(f"md5 sums in node, one thread that computes: microseconds per sum and over glibc. Article: {ARTICLE['libc']} s with "
             f"libc, {ARTICLE['libumem, 64 MB per thread']} s with a cache of 64 MB per thread, "
             f"{ARTICLE['libumem, 64 MB per thread'] / ARTICLE['libc']:.2f} (the default of 1 MB had been too small for it). "
             "Terrace's counterpart of that setting is TERRACE_BUDGET, and perthread_cache for its libumem.")
    rows = [[title, f"{median(results, name, 'ns_per_hash') / 1000:.3f}", ratio(results, name, "ns_per_hash", "glibc")]
            for title, name in [*((name, name) for name in names(results)), ("glibc again", AGAIN)]]
    page.table(["md5 in node", "microseconds", "over glibc"], rows)
    if "terrace" not in names(results):
        return
    ours, larger = (ratio(results, name, "ns_per_hash", "glibc") for name in ("terrace", BUDGET))
    page.finding(ours.median < 0.9, "a faster malloc is felt in a garbage-collected language (article: 0.71 of libc's time): "
                 f"terrace takes {ours} of glibc's, with a budget of 64 MB {larger}.",
                 "glibc has a cache per thread and no contended lock by now, so what the article gained is gained already")
    if CAP in names(results):
        gained = ratio(results, CAP, "ns_per_hash", "glibc")
        page.finding(gained.median < 0.9, f"libumem with a cap of 64 MB takes {gained} of glibc's time.",
                     "glibc has a cache per thread by now")
    first = {name: results[name][0] for name in ("terrace", BUDGET)}
    page.say(f"Each sum allocates {first['terrace']['allocations']:.1f} blocks, and the collector of node frees those of many "
             f"thousand sums at a time, more than a core holds: {first['terrace']['slabs']:.1f} per sum go all the way to the "
             f"slabs and back, {first[BUDGET]['slabs']:.1f} with the larger budget.")
