# SPDX-License-Identifier: MIT OR Apache-2.0
"""Threads that allocate little at a time, which TLAB sizing does not foresee: 1,000 bursty threads, a storm of starting threads,
1,000 threads that each push a little onto one list; and 1,000 virtual threads, whose TLABs are those of the few that carry them."""

import argparse

from cells import FOREGROUND, Cell, Experiment, Program
from interleave import Rounds
from jvms import AUTO, CORE, GROWING, KEEP_RESERVE, KEPT, ON, PATCHED, STOCK, heap, tlab
from report import Report
from shown import PROCESSOR_RATE, RATE, at_least, at_most, details, noise, number, over, per_operation, rate_of, shown, wasted_percent

KINDS = {"bursty": ("bursty", "1000"), "crowded": ("bursty", "1000"), "storm": ("storm", "100"), "push": ("push", "1000"),
         "virtual": ("virtual", "1000")}
TITLES = {"bursty": "1,000 bursty threads", "crowded": "1,000 bursty threads, 16 MiB", "storm": "thread-start storm", "push": "1,000 threads push onto one list",
          "virtual": "1,000 bursty virtual threads"}
WAYS = {STOCK: (STOCK, ()), "on": (PATCHED, ON), KEPT: (PATCHED, KEEP_RESERVE), "core": (PATCHED, CORE), "auto": (PATCHED, AUTO)}
HEAPS = {"bursty": ("256m", "1g"), "crowded": ("16m", "512m"), "storm": ("64m", "512m"), "push": ("64m", "512m"), "virtual": ("256m", "1g")}
COLLECTIONS = "collections an operation"
BY_THREAD = (STOCK, "on", KEPT)


def program(options: argparse.Namespace, kind: str) -> Program:
    warm, measured = (0.3, 0.4) if options.smoke else (0.8, 1.4)
    return Program(("Bursts", *KINDS[kind], str(warm), str(measured)), warm + measured)


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
    found += [cell(options, "bursty", way, "16K") for way in BY_THREAD]
    return found + [cell(options, kind, way, collector="G1") for kind in KINDS if kind != "crowded" for way in BY_THREAD]


def _ratios(results: Rounds, kinds: dict[str, str], ways: tuple[str, ...], key: str = RATE, collector: str = "Parallel",
            sizing: str = GROWING) -> list[list[str]]:
    return [[title, *(shown(over(results, name(kind, way, sizing, collector), name(kind, STOCK, sizing, collector), key)) for way in ways)]
            for kind, title in kinds.items()]


def report(options: argparse.Namespace, page: Report, results: Rounds) -> None:
    page.head("Threads that allocate in bursts")
    page.say("Bursty: 20 objects of 48 bytes, then yield; objects per second. Storm: threads that start, allocate 4 KiB and end, 100 at a "
             "time; push: threads start, up to 1,000 at a time, each pushes 16 nodes onto one list that all share, and ends (what JDK-8381834 "
             "is about); threads per second. Virtual: as bursty, of virtual threads, on as many carriers as there are cores. Parallel, a young space of "
             "64 MiB, bursty and virtual: 256 MiB but where it is said, HotSpot's own sizing. "
             f"{KEPT}: the buffers alone, C2's prefetch reserve stays in each TLAB; by core TLABs are short. "
             f"A/A: {noise(results)}.")
    ways = tuple(way for way in WAYS if way != STOCK)
    rows = []
    for row, kind in zip(_ratios(results, TITLES, ways), KINDS, strict=True):
        rows.append([row[0], rate_of(results, name(kind, STOCK)), *row[1:],
                     " / ".join(number(wasted_percent(results, name(kind, way))) for way in WAYS),
                     " / ".join(number(per_operation(results, name(kind, way), "collections")) for way in WAYS)])
    page.table(["", "stock, thousand/s", *(f"{way} / stock" for way in ways), "wasted, %: " + " / ".join(WAYS),
                "collections for a million"], rows)
    page.say("The same for a second of processor time of the whole process, its collections included.")
    page.table(["", *(f"{way} / stock" for way in ways)], _ratios(results, TITLES, ways, PROCESSOR_RATE))
    for values in (v for rounds in results.values() for v in rounds if v):
        values[COLLECTIONS] = values["collections"] / max(1.0, values["operations"])
    for way in ("core", "auto"):
        at_most(page, f"1,000 bursty threads in 16 MiB: collections, {way} over stock",
                over(results, name("crowded", way), name("crowded", STOCK), COLLECTIONS), 0.8)
    for way in ("on", "core", "auto"):
        at_least(page, f"1,000 bursty threads, default sizes: {way} over stock", over(results, name("bursty", way), name("bursty", STOCK)), 1.15)
    if not options.smoke:
        rows = _ratios(results, {"bursty": "Parallel, bursty, TLAB 16K"}, BY_THREAD[1:], sizing="16K")
        rows += _ratios(results, {kind: f"G1, {kind}" for kind in KINDS if kind != "crowded"}, BY_THREAD[1:], collector="G1")
        page.table(["", *(f"{way} / stock" for way in BY_THREAD[1:])], rows)
    details(page, results)


EXPERIMENT = Experiment("bursts", cells, report)
