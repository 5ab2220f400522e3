# SPDX-License-Identifier: MIT OR Apache-2.0
"""Threads that do little but allocate: JMH with 1 to 1,000 threads, TLABs of all sizes; what an object costs by core; C2's reserve."""

import argparse
from collections.abc import Sequence
from typing import Any

from cells import FOREGROUND, Cell, Experiment, Program, threads
from interleave import Rounds
from jvms import CORE, GROWING, KEEP_RESERVE, KEPT, NONE, ON, PATCHED, STOCK, heap, tlab
from report import Report, plain_numbers
from shown import RATE, at_least, at_most, details, middle, noise, number, over, rate_of, shown, wasted_percent

SIZES = (16, 48, 144)
SMALL = ("1K", "4K", "16K")
YOUNG, MOST = "256m", "1g"
WAYS = {STOCK: (STOCK, ()), "on": (PATCHED, ON), KEPT: (PATCHED, KEEP_RESERVE)}
COSTS = {"16": "16 bytes", "48": "48 bytes", "144": "144 bytes", "array": "byte[32]"}
# One that stays in the cores' caches, and one where each object is written to memory that no cache has.
COST_YOUNG = ("8m", YOUNG)


def program(options: argparse.Namespace, size: int, count: int) -> Program:
    """JMH; with more threads than it can bring to a common start and end, a loop of ours."""
    if count > threads():
        warm, measured = (0.3, 0.3) if options.smoke else (1.0, 0.8)
        return Program(("Objects", str(size), str(count), str(warm), str(measured)), warm + measured + count / 200)
    first, iterations, each = (200, 1, 200) if options.smoke else (500, 2, 400)
    times = ("-wi", "1", "-w", f"{first}ms", "-i", str(iterations), "-r", f"{each}ms")
    return Program(("JMH", f"terrace.bench.Allocation.bytes{size}$", "-t", str(count), *times), 0.5 + (first + iterations * each) / 1e3)


def name(size: int, count: int, way: str, sizing: str) -> str:
    return f"{size} B, {count} {'thread' if count == 1 else 'threads'}, {way}, TLAB {sizing}"


def _cell(options: argparse.Namespace, size: int, count: int, way: str, sizing: str, *, jvm: str, more: Sequence[str],
          collector: str = "Parallel") -> Cell:
    flags = (*heap(YOUNG, MOST, collector), FOREGROUND, *tlab(sizing), *more)
    prefix = "" if collector == "Parallel" else f"{collector}, "
    return Cell(prefix + name(size, count, way, sizing), jvm, flags, program(options, size, count))


def cost_name(what: str, way: str, young: str) -> str:
    return f"cost of {COSTS[what]}, {way}, young space {young}"


def _costs() -> list[Cell]:
    return [Cell(cost_name(what, way, young), PATCHED, (*heap(young, MOST), FOREGROUND, *more), Program(("Cost", what, "0.5", "0.8"), 1.4))
            for young in COST_YOUNG for what in COSTS for way, more in (("by thread", ON), ("by core", CORE))]


def counts() -> tuple[int, int]:
    """Those of the figure: twice the cores, and 64."""
    return threads(), 64


def _pairs(options: argparse.Namespace) -> list[tuple[int, int, str]]:
    """Size of objects, threads, size of TLABs: each on both JVMs."""
    if options.smoke:
        return [(48, threads(), "4K")]
    found = [(size, n, t) for t in SMALL for n in counts() for size in SIZES]
    found += [(48, n, GROWING) for n in (1, *counts(), 1000)]
    found += [(48, 1, "4K"), (48, 1, "16K"), (48, 1000, "16K")]
    if options.full:
        found += [(size, n, t) for size in SIZES for n in (1, 16, 256, 1000) for t in (*SMALL, "64K", GROWING)]
    return list(dict.fromkeys(found))


def cells(options: argparse.Namespace) -> list[Cell]:
    found = [_cell(options, *p[:2], way, p[2], jvm=jvm, more=more) for p in _pairs(options) for way, (jvm, more) in WAYS.items()]
    if options.smoke:
        return found
    found += _costs()
    found.append(_cell(options, 48, 2, STOCK, NONE, jvm=STOCK, more=()))
    found += [_cell(options, 48, 64, way, t, jvm=jvm, more=more, collector="G1") for t in ("4K", "16K", GROWING)
              for way, (jvm, more) in WAYS.items()]
    return list({cell.name: cell for cell in found}.values())


APART = ("stock, M/s", "on / stock", "the buffers: reserve kept / stock", "no reserve: on / reserve kept")


def apart(results: Rounds, ways: Sequence[str], key: str = RATE) -> list[str]:
    """What both together gain, what the buffers do, and what the missing prefetch reserve does."""
    stock, on, kept = ways
    ratios = (over(results, a, b, key) for a, b in ((on, stock), (kept, stock), (on, kept)))
    return [rate_of(results, stock, 1e6, key), *map(shown, ratios)]


def _rates(options: argparse.Namespace, page: Report, results: Rounds) -> None:
    rows = []
    for size, count, sizing in _pairs(options):
        ways = [name(size, count, way, sizing) for way in WAYS]
        rows.append([f"{size} B, {count} threads, TLAB {sizing}", *apart(results, ways),
                     " / ".join(number(wasted_percent(results, way)) for way in ways)])
        if sizing in SMALL and count in counts():
            at_least(page, f"{size} bytes, {count} threads, TLABs of {sizing}: on over stock", over(results, ways[1], ways[0]), 1.2)
    page.table(["objects", *APART, "wasted, %: " + " / ".join(WAYS)], rows)
    _plot(page, results)


def _plot(page: Report, results: Rounds) -> None:
    ticks = (*SMALL, GROWING)

    def draw(axes: list[Any]) -> None:
        for axis, count in zip(axes, (*counts(), 1000), strict=True):
            for way in WAYS:
                line = [(i, rate) for i, t in enumerate(ticks) if (rate := middle(results, name(48, count, way, t))) is not None]
                axis.plot([i for i, _ in line], [rate / 1e6 for _, rate in line], marker="o", label=way)
            axis.set_xticks(range(len(ticks)), ticks)
            axis.set(title=f"48 bytes, {count} threads", xlabel="TLAB", ylabel="million objects per second", ylim=(0, None))
            axis.legend()
            plain_numbers(axis.yaxis)

    page.panels("jdk-allocation", 1, 3, draw)


def _object(page: Report, results: Rounds) -> None:
    page.say("What an object costs in compiled code, set to zero, one thread, in its processor time, the loop that keeps the last 64 included: by core over "
             "from a TLAB. In a young space that the caches hold, and in one that they do not: there, an object's memory has to come first, and the stub's "
             "instructions run meanwhile. The last row: each object by compare-and-swap on the young space, two threads, through the VM as HotSpot does "
             "without TLABs; time of a thread for an object.")
    rows = []
    for young in COST_YOUNG:
        for what, named in COSTS.items():
            by_core, by_thread = (cost_name(what, way, young) for way in ("by core", "by thread"))
            cost = over(results, by_thread, by_core)  # rates: the other way round
            at_most(page, f"{named} by core over the TLAB path, young space {young}", cost, 1.3)
            rows.append([f"{named}, {young}", *(number(_nanoseconds(results, n, 1)) for n in (by_thread, by_core)), shown(cost)])
            if cost is not None and what == "48":
                page.finding(cost.median >= 1, f"an object by core costs more (paper: 13.9 cycles, 10.2 instructions): {named}, {young}: {cost}.")
    swap = name(48, 2, STOCK, NONE)
    rows.append([f"48 bytes, {YOUNG}, compare-and-swap, two threads", number(_nanoseconds(results, swap, 2)), "", ""])
    page.table(["object, young space", "TLAB, ns", "by core, ns", "by core / TLAB"], rows)


def _nanoseconds(results: Rounds, key: str, count: int) -> float | None:
    rate = middle(results, key)
    return None if rate is None else 1e9 * count / rate


def report(options: argparse.Namespace, page: Report, results: Rounds) -> None:
    page.head("Allocation alone")
    page.say(f"JMH, an object for each call, and with more than {threads()} threads a loop of ours; Parallel, young space {YOUNG}. On: the buffers with their default sizes, "
             "and without C2's prefetch reserve of 576 bytes in each TLAB; the two stand apart. "
             f"A/A: {noise(results)}.")
    _rates(options, page, results)
    if options.smoke:
        return
    _object(page, results)
    page.say("The same on G1, 48 bytes, 64 threads.")
    rows = []
    for t in ("4K", "16K", GROWING):
        rows.append([t, *apart(results, [f"G1, {name(48, 64, way, t)}" for way in WAYS])])
    page.table(["TLAB", *APART], rows)
    details(page, results, 1e6, "M/s")


EXPERIMENT = Experiment("allocation", cells, report)
