# SPDX-License-Identifier: MIT OR Apache-2.0
"""Threads that allocate little at a time, which TLAB sizing does not foresee: 1,000 bursty threads, a storm of starting threads, and
1,000 threads that each push a little onto one list."""

from __future__ import annotations

import argparse

from cells import FOREGROUND, Cell, Experiment, Program
from interleave import AGAIN, Rounds
from jvms import CORE, FLIP, GROWING, ON, PATCHED, STOCK, heap, tlab
from page import Page
from shown import at_least, details, middle, number, over, per_operation, shown, wasted_percent

KINDS = {"bursty": 1000, "storm": 100, "push": 1000}
TITLES = {"bursty": "1,000 bursty threads", "storm": "thread-start storm", "push": "1,000 threads push onto one list"}
WAYS = {STOCK: (STOCK, ()), "on": (PATCHED, ON), "core": (PATCHED, CORE), "flip": (PATCHED, FLIP)}
HEAPS = {"bursty": ("256m", "1g"), "storm": ("64m", "512m"), "push": ("64m", "512m")}


def program(options: argparse.Namespace, kind: str) -> Program:
    warm, measured = (0.3, 0.4) if options.smoke else (0.8, 1.4)
    return Program(("Bursts", kind, str(KINDS[kind]), str(warm), str(measured)), warm + measured)


def name(kind: str, way: str, sizing: str = GROWING, collector: str = "Parallel") -> str:
    prefix = "" if collector == "Parallel" else f"{collector}, "
    return f"{prefix}{kind}, {way}" + ("" if sizing == GROWING else f", TLAB {sizing}")


def cell(options: argparse.Namespace, kind: str, way: str, sizing: str = GROWING, collector: str = "Parallel") -> Cell:
    jvm, more = WAYS[way]
    flags = (*heap(*HEAPS[kind], collector), FOREGROUND, "-Xss256k", *tlab(sizing), *more)
    return Cell(name(kind, way, sizing, collector), jvm, flags, program(options, kind))


def cells(options: argparse.Namespace) -> list[Cell]:
    found = [cell(options, kind, way) for kind in KINDS for way in WAYS]
    if options.smoke:
        return found
    found += [cell(options, "bursty", way, "16K") for way in (STOCK, "on")]
    return found + [cell(options, kind, way, collector="G1") for kind in KINDS for way in (STOCK, "on")]


def report(options: argparse.Namespace, page: Page, results: Rounds) -> None:
    page.head("Threads that allocate in bursts")
    page.say("Bursty: 20 objects of 48 bytes, then yield; objects per second. Storm: threads that start, allocate 4 KiB and end, 100 at a "
             "time; push: threads start, up to 1,000 at a time, each pushes 16 nodes onto one list that all share, and ends (what JDK-8381834 "
             "is about); threads per second. Parallel, a young space of 64 MiB, bursty: 256 MiB, HotSpot's own sizing. "
             f"A/A: {shown(over(results, AGAIN, next(iter(results), '')))}.")
    rows = []
    for kind in KINDS:
        stock = name(kind, STOCK)
        rate = middle(results, stock)
        ours = [name(kind, way) for way in WAYS if way != STOCK]
        rows.append([TITLES[kind], number(None if rate is None else rate / 1e3), *(shown(over(results, key, stock)) for key in ours),
                     " / ".join(number(wasted_percent(results, name(kind, way))) for way in WAYS),
                     " / ".join(number(per_operation(results, name(kind, way), "collections")) for way in WAYS)])
    page.table(["", "stock, thousand/s", *(f"{way} / stock" for way in WAYS if way != STOCK), "wasted, %: " + " / ".join(WAYS),
                "collections for a million"], rows)
    for way in ("on", "core", "flip"):
        at_least(page, f"1,000 bursty threads, default sizes: {way} over stock", over(results, name("bursty", way), name("bursty", STOCK)), 1.15)
    if not options.smoke:
        rows = [["Parallel, bursty, TLAB 16K", shown(over(results, name("bursty", "on", "16K"), name("bursty", STOCK, "16K")))]]
        on_g1 = {way: {kind: name(kind, way, collector="G1") for kind in KINDS} for way in (STOCK, "on")}
        rows += [[f"G1, {kind}", shown(over(results, on_g1["on"][kind], on_g1[STOCK][kind]))] for kind in KINDS]
        page.table(["", "on / stock"], rows)
    details(page, results, [n for n in results if n != AGAIN])


EXPERIMENT = Experiment("bursts", cells, report)
