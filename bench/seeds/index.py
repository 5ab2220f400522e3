# SPDX-License-Identifier: MIT OR Apache-2.0
"""Experiments of "malloc for Haswell HTM: index-aware" (Dave Dice): placement and cache sets, and what transactions make of it."""

import argparse
import os

import allocators
import index_footprint
import index_transactions
import ring
from interleave import Rounds, Subject, interleaved, measured, median, names, preloaded, ratio
from report import ROOT, Report, plain_numbers

ARTICLE = ring.ARTICLE
ARTICLE_NS = (2.1, 8.1, 2.1)


def subjects(options: argparse.Namespace) -> list[Subject]:
    """glibc, every placement of Terrace, then the peers that are here."""
    ours = [preloaded(f"terrace {p}", options.library, TERRACE_PLACEMENT=p) for p in ring.PLACEMENTS]
    found = allocators.subjects(options.library, ROOT / "build" / "peers")
    peers = [s for s in found if s.name not in (allocators.GLIBC, allocators.TERRACE)]
    return [found[0], *ours, *peers]


def _measured(options: argparse.Namespace, chosen: list[Subject], sizes: tuple[int, ...]) -> Rounds:
    program = options.build / "bench" / "seeds" / "bench_ring"
    one_cpu = {max(os.sched_getaffinity(0))}
    return measured(options, "seeds-index-ring", lambda: interleaved(
        chosen, min(3, options.rounds), lambda s: ring.measure(s, program, sizes, one_cpu)))


def _table(results: Rounds, names: list[str], page: Report) -> None:
    def of(name: str, size: int) -> str:
        return f"{median(results, name, f'ns/{size}'):.2f}"

    rows: list[list[object]] = [["article, i7-4770, glibc", *ARTICLE_NS, "", ""]]
    for name in names:
        sizes = [int(key.split("/")[1]) for key in results[name][0] if key.startswith("ns/")]
        over = {s: ratio(results, name, f"ns/{s}", name, f"by_hand_ns/{s}").median for s in sizes}
        worst = max(over, key=lambda s: over[s])
        rows.append([name, *(of(name, size) for size in ARTICLE), f"{over[worst]:.2f} at {worst}",
                     f"{sum(o > 1.15 for o in over.values())} of {len(over)}"])
    page.table(["nanoseconds of a step", *(f"{size} bytes" for size in ARTICLE), "worst over by hand", "sizes over 1.15"], rows)


def _plot(results: Rounds, names: list[str], sizes: tuple[int, ...], page: Report) -> None:
    ordered = sorted(sizes)
    ours = [n for n in names if n.startswith("terrace")]
    groups = ([names[0], *ours], [names[0], ours[0], *(n for n in names[1:] if n not in ours)])
    highest = max(median(results, n, f"ns/{s}") for n in names for s in ordered)

    def draw(axes) -> None:  # type: ignore[no-untyped-def]
        for axis, group, title in zip(axes, groups, ("placements of Terrace", "allocators"), strict=True):
            for name in group:
                axis.plot(ordered, [median(results, name, f"ns/{s}") for s in ordered], marker=".", lw=1, label=name)
            axis.plot(ordered, [median(results, ours[0], f"by_hand_ns/{s}") for s in ordered], "k--", lw=1, label="by hand")
            axis.set(title=title, xlabel="size of a node, bytes", ylabel="time of a step, ns", ylim=(0, 1.35 * highest))
            axis.legend(fontsize=8, ncols=3, loc="upper center")
            plain_numbers(axis.xaxis)

    page.panels("index-ring", 1, 2, draw)


def run_ring(options: argparse.Namespace, page: Report, chosen: list[Subject]) -> None:
    sizes = ARTICLE if options.smoke else index_transactions.SIZES
    results = _measured(options, chosen, sizes)
    listed = names(results)
    glibc, default = listed[0], listed[1]
    page.head("Cache sets: a ring of 250 nodes")
    page.say("Each node is allocated by malloc, the ring goes through them at random; a step writes a word of the node and goes on. "
             "By hand: the same ring, laid out an odd number of lines apart; it is measured in the same process. Each size has a "
             "process of its own.")
    _table(results, listed, page)
    _plot(results, listed, sizes, page)
    slow = [ratio(results, glibc, "ns/1010", glibc, f"ns/{other}") for other in (950, 1080)]
    page.finding(min(s.median for s in slow) > 1.5,
                 "glibc is slow at 1,010 bytes and fast at 950 and 1,080 (article: 8.1 over 2.1 ns, 3.86): "
                 f"{slow[0]} of the time at 950, {slow[1]} of that at 1,080.")
    over = max((ratio(results, default, f"ns/{s}", default, f"by_hand_ns/{s}") for s in ARTICLE), key=lambda s: s.median)
    page.finding(over.median < 1.15, f"an index-aware allocator avoids the inflection (article): {default} takes at most {over} of "
                 "the ring laid out by hand at these three sizes.")
    crowded = [n for n in listed if not n.startswith("terrace") and ratio(results, n, "ns/950", n, "by_hand_ns/950").median > 1.5]
    if crowded:
        page.say(f"At 950 bytes, a size that is harmless with glibc's headers, {', '.join(crowded)} "
                 "lay their nodes 1,024 bytes apart, too: size classes meet the bad stride for a range of sizes, not for one.")


def run(options: argparse.Namespace, page: Report) -> None:
    chosen = subjects(options)
    run_ring(options, page, chosen)
    index_transactions.run(options, page, chosen)
    index_footprint.run(options, page, chosen)
