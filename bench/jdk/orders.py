# SPDX-License-Identifier: MIT OR Apache-2.0
"""[MP-RCS] Figure 9: order processing by 1 to 64 warehouses, objects by thread, by core, and flip."""

import argparse
from typing import Any

from cells import FOREGROUND, Cell, Experiment, Program
from interleave import AGAIN, Rounds
from jvms import CORE, FLIP, KEEP_RESERVE, ON, PATCHED, STOCK, heap
from report import Report
from shown import PROCESSOR_RATE, details, middle, number, over, rate_of, shown, wasted_percent

KEPT = "thread, reserve kept"
WAYS = {"thread": ON, KEPT: KEEP_RESERVE, "core": CORE, "flip": FLIP}
YOUNG, MOST = "900m", "2g"  # a collection every 200 to 300 ms


def counts(options: argparse.Namespace) -> tuple[int, ...]:
    return (1, 2, 4, 8, 16, 32, 64) if options.full else (2, 16) if options.smoke else (1, 2, 4, 16, 64)


def program(options: argparse.Namespace, warehouses: int) -> Program:
    warm, measured = (0.3, 0.4) if options.smoke else (1.2, 2.0)
    return Program(("Orders", str(warehouses), str(warm), str(measured)), warm + measured + 0.2)


def name(way: str, warehouses: int) -> str:
    return f"{warehouses} warehouses, {way}"


def cells(options: argparse.Namespace) -> list[Cell]:
    flags = (*heap(YOUNG, MOST), FOREGROUND)
    found = []
    for n in counts(options):
        found.append(Cell(name(STOCK, n), STOCK, flags, program(options, n)))
        found += [Cell(name(way, n), PATCHED, (*flags, *more), program(options, n)) for way, more in WAYS.items()]
    return found


def _apart(results: Rounds, key: str) -> float | None:
    """Milliseconds from one collection to the next."""
    seconds, collections = middle(results, key, "window_seconds"), middle(results, key, "collections")
    return 1e3 * seconds / collections if seconds and collections else None


def _table(options: argparse.Namespace, page: Report, results: Rounds) -> None:
    rows = []
    for n in counts(options):
        base = name(STOCK, n)
        ways = [name(way, n) for way in WAYS]
        rows.append([
            n, rate_of(results, base), *(shown(over(results, way, base)) for way in ways), number(_apart(results, base)),
            " / ".join(number(wasted_percent(results, way)) for way in (base, *ways)),
        ])
    page.table(["warehouses", "stock, thousand/s", *(f"{way} / stock" for way in WAYS), "ms from one collection to the next",
                "wasted, %: stock / " + " / ".join(WAYS)], rows)


def _in_processor_time(options: argparse.Namespace, page: Report, results: Rounds) -> None:
    page.say("The same for a second of processor time of the whole process, its collections included.")
    rows = [[n, *(shown(over(results, name(way, n), name(STOCK, n), PROCESSOR_RATE)) for way in WAYS)] for n in counts(options)]
    page.table(["warehouses", *(f"{way} / stock" for way in WAYS)], rows)


def _plot(options: argparse.Namespace, page: Report, results: Rounds) -> None:
    def draw(axes: list[Any]) -> None:
        for way in (STOCK, *WAYS):
            present = [(n, rate) for n in counts(options) if (rate := middle(results, name(way, n))) is not None]
            if present:
                axes[0].plot([n for n, _ in present], [rate / 1e3 for _, rate in present], marker="o", label=way)
        axes[0].set_xscale("log", base=2)
        axes[0].set_xticks(counts(options), [str(n) for n in counts(options)])
        axes[0].set(xlabel="warehouses", ylabel="thousand transactions per second", ylim=(0, None))
        axes[0].legend()

    page.panels("jdk-orders-figure9", 1, 1, draw)


def _findings(options: argparse.Namespace, page: Report, results: Rounds) -> None:
    few, many = counts(options)[0], counts(options)[-1]
    first, last = (over(results, name("core", n), name("thread", n)) for n in (few, many))
    if first is not None and last is not None:
        page.finding(first.median < 1, f"with few threads by core is slower than by thread (paper, up to 8): {first} at {few}.")
        page.finding(last.median > 1, f"beyond 16 threads by core is faster (paper): {last} at {many}.",
                "what TLABs waste of a space this large is little")
        flipped = over(results, name("flip", many), name("core", many))
        if flipped is not None:
            page.finding(abs(flipped.median - 1) < 0.05, f"with many threads flip does as by core (paper): {flipped} of it at {many}.")
    wasted = wasted_percent(results, name(STOCK, many))
    if wasted is not None:
        page.finding(2 <= wasted <= 5, f"TLABs waste 2 to 5 % of the heap (paper): {wasted:.1f} % at {many}.",
                "a space that lasts as long is many times as large today, and 1 % of it is what HotSpot's sizing aims at")


def report(options: argparse.Namespace, page: Report, results: Rounds) -> None:
    page.head("Order processing: 1 to 64 warehouses")
    first = name(STOCK, counts(options)[0])
    page.say(f"Figure 9: transactions per second, a thread for each warehouse; Parallel, young space {YOUNG}, HotSpot's own sizing of TLABs, "
             "buffers of the default size. By thread: TLABs from the buffers of the cores; by core: objects from them; flip: by what TLABs wasted. "
             f"{KEPT}: as by thread, but C2's prefetch reserve stays in each TLAB: what the buffers do by themselves. "
             "The paper ran SPECjbb2000 on eight processors, a collection every 200 to 300 ms. "
             f"A/A: {shown(over(results, AGAIN, first))}, the first row's stock.")
    _table(options, page, results)
    _in_processor_time(options, page, results)
    _plot(options, page, results)
    _findings(options, page, results)
    details(page, results)


EXPERIMENT = Experiment("orders", cells, report)
