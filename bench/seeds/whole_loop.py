# SPDX-License-Identifier: MIT OR Apache-2.0
"""The article's "tight 4 byte allocation loop" as it was run: 512 Mi pairs by one thread, and by each of 16."""

import argparse
import json
from collections.abc import Sequence

from interleave import Rounds, Subject, Values, interleaved, measured, median, names
from interleave import run as run_program
from pair_loops import ARTICLE, ARTICLE_PAIRS, LOCK, THREADS, without_cache
from report import Report

# Not the peers: they are measured by time, in pair_loops, which says as much and takes minutes less.
WANTED = ("glibc", LOCK, "libumem, no cache", "libumem", "terrace")


def _measure(options: argparse.Namespace, subject: Subject) -> Values:
    program = str(options.build / "bench" / "seeds" / "bench_pair_loop")
    pairs = 2**16 if options.smoke else ARTICLE_PAIRS
    values: Values = {}
    for threads in (1, THREADS):
        said = json.loads(run_program(subject, [program, str(threads), f"pairs={pairs}", "4"]))
        values |= {f"{threads}/{key}": ns * ARTICLE_PAIRS / 1e9 for key, ns in said.items()}
    return values


def run(options: argparse.Namespace, page: Report, present: Sequence[Subject]) -> None:
    by_name = {s.name: s for s in (*present, without_cache())}
    chosen = [by_name[name] for name in WANTED if name in by_name]
    results: Rounds = measured(options, "seeds-whole", lambda: interleaved(chosen, 1, lambda s: _measure(options, s)))
    page.say(f"512 Mi pairs of malloc and free of 4 bytes, seconds: by one thread, and by each of {THREADS} as it sees it and in "
             "cpu time. One run of each.")
    rows: list[list[object]] = [[f"article: {name}", f"{ns / 1e9:.2f}", "", ""] for name, ns in ARTICLE.items()]
    for name in names(results):
        shown = (f"{median(results, name, key):.2f}" for key in ("1/ns", f"{THREADS}/ns", f"{THREADS}/cpu_ns"))
        rows.append([name, *shown])
    page.table(["512 Mi pairs", "1 thread", f"{THREADS} threads, seen", f"{THREADS} threads, cpu"], rows)
    if "libumem" in names(results):
        page.say("A loop of one block needs one place: what perthread_cache=0 leaves a core is enough for it. The article's gain, "
                 f"{ARTICLE['libumem, cache per thread'] / ARTICLE['libumem, a lock per cpu']:.2f} of the time, was that of going "
                 "without a lock, and Terrace's cores have none in either case.")
