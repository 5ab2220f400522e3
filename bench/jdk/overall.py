# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the buffers cost where nobody asked for them: patched and off, on with default sizes, by core, and auto, against stock, on every kind of program."""

import argparse
from collections.abc import Sequence
from dataclasses import replace

import allocation
import bursts
import chat
import javac
import orders
from cells import FOREGROUND, Cell, Experiment, Program, threads
from interleave import Rounds
from jvms import AUTO, CORE, GROWING, KEEP_RESERVE, KEPT, ON, PATCHED, STOCK, heap, tlab
from report import Report
from shown import PROCESSOR_RATE, RATE, at_least, details, mean, noise, over, shown

OFF, WITH, BY_CORE, EITHER = "off", "on", "by core", "auto"
FIXED = "on, TLAB 16K"
WAYS: dict[str, tuple[str, tuple[str, ...]]] = {STOCK: (STOCK, ()), OFF: (PATCHED, ()), WITH: (PATCHED, ON), KEPT: (PATCHED, KEEP_RESERVE),
                                              BY_CORE: (PATCHED, CORE), EITHER: (PATCHED, AUTO)}


def shapes(options: argparse.Namespace) -> dict[str, tuple[tuple[str, ...], Program]]:
    """Flags that all ways have, and what is run."""
    few, many = (2, 16) if options.smoke else (4, 64)
    talking = chat.counts(options)[-1]
    talk = chat._cell(options, 4, chat.THREAD, GROWING, talking)
    found = {
        "javac": (heap(javac.YOUNG, javac.MOST), javac.program(options)),
        f"{few} warehouses": ((*heap(orders.YOUNG, orders.MOST), FOREGROUND), orders.program(options, few)),
        f"{many} warehouses": ((*heap(orders.YOUNG, orders.MOST), FOREGROUND), orders.program(options, many)),
        f"chat, {talking} threads": (talk.flags, talk.program),
        f"48 bytes, {threads()} threads": ((*heap(allocation.YOUNG, allocation.MOST), FOREGROUND), allocation.program(options, 48, threads())),
        f"48 bytes, {many} threads": ((*heap(allocation.YOUNG, allocation.MOST), FOREGROUND), allocation.program(options, 48, many)),
    }
    for kind, title in bursts.TITLES.items():
        if kind == "crowded":  # about its collections
            continue
        one = bursts.cell(options, kind, STOCK)
        found[title] = (one.flags, one.program)
    if not options.smoke:
        for collected in (f"{few} warehouses", f"48 bytes, {many} threads"):
            flags, what = found[collected]
            found[f"G1, {collected}"] = (_on_g1(flags), what)
    return found


def _on_g1(flags: Sequence[str]) -> tuple[str, ...]:
    kept = (f for f in flags if f != "-XX:-UseAdaptiveSizePolicy")
    return tuple(f.replace("UseParallelGC", "UseG1GC") for f in kept)


def is_fixed(shape: str) -> bool:
    """Whether TLABs of 16 KiB on the buffers are to do as well as stock's sizing there."""
    return shape == "javac" or (shape.endswith("warehouses") and not shape.startswith("G1"))


def name(shape: str, way: str) -> str:
    return f"{shape}, {way}"


def cells(options: argparse.Namespace) -> list[Cell]:
    found: list[Cell] = []
    for shape, (flags, what) in shapes(options).items():
        ways = {way: Cell(name(shape, way), jvm, (*flags, *more), what) for way, (jvm, more) in WAYS.items()}
        found += ways.values()
        if is_fixed(shape):
            found.append(replace(ways[WITH], name=name(shape, FIXED), flags=(*flags, *tlab("16K"), *ON)))
    return found


def _table(options: argparse.Namespace, page: Report, results: Rounds, key: str) -> None:
    ways = (OFF, WITH, KEPT, BY_CORE, EITHER, FIXED)
    rows = [[shape, *(shown(over(results, name(shape, way), name(shape, STOCK), key)) for way in ways)] for shape in shapes(options)]
    together = (mean(over(results, name(shape, way), name(shape, STOCK), key) for shape in shapes(options)) for way in ways[:-1])
    rows.append(["all, the geometric mean", *("-" if found is None else f"{found:.3f}" for found in together), "-"])
    page.table(["", *ways], rows)


def report(options: argparse.Namespace, page: Report, results: Rounds) -> None:
    page.head("Off, on with default sizes, by core, and auto")
    page.say(f"Throughput over the stock JVM's, both with HotSpot's own sizing of TLABs; {FIXED}: TLABs of 16 KiB over it. Off: the patched JVM "
             f"without any of its flags. {KEPT}: the buffers alone, C2's prefetch reserve stays in each TLAB; by core TLABs are short. "
             f"A/A: {noise(results)}, the first row's stock.")
    for shape in shapes(options):
        ratios = {way: over(results, name(shape, way), name(shape, STOCK)) for way in (OFF, WITH, EITHER, FIXED)}
        at_least(page, f"{shape}: all new flags off over stock", ratios[OFF], 0.99)
        at_least(page, f"{shape}: on with default sizes over stock", ratios[WITH], 0.98)
        at_least(page, f"{shape}: auto over stock", ratios[EITHER], 0.98)
        if is_fixed(shape):
            at_least(page, f"{shape}: TLABs of 16 KiB on buffers of the cores over stock's default sizing", ratios[FIXED], 0.97)
    _table(options, page, results, RATE)
    page.say("The same for a second of processor time of the whole process, its collections included; JMH does not tell it; "
             "of chat it is the clients' process.")
    _table(options, page, results, PROCESSOR_RATE)
    details(page, results)


EXPERIMENT = Experiment("overall", cells, report)
