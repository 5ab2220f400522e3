# SPDX-License-Identifier: MIT OR Apache-2.0
"""[HAB] Figures 2 and 3, Tables I and II: the compiler compiles, with TLABs of all sizes on buffers of cores and of last-level caches."""

import argparse
from pathlib import Path
from typing import Any

from cells import Cell, Experiment, Program, threads
from interleave import AGAIN, Rounds
from jvms import GROWING, KEEP_RESERVE, KEPT, NONE, ON, PATCHED, STOCK, clab, heap, plab, tlab
from papers import CLABS, PLABS, TABLE_1, TABLE_2
from report import Report, plain_numbers, speedups
from shown import LEFT_OUT, details, foreign_percent, mean, middle, number, over, shown

TLABS = (NONE, "1K", "4K", "8K", "16K", "32K", "64K", "128K", GROWING)
CHOSEN = {"TLABs": (NONE, "1K", "4K", "16K", "128K", GROWING), "PLAB": ("8M",), "CLAB": ("1M", "8M")}
QUICK = {"TLABs": ("16K", GROWING), "PLAB": ("8M",), "CLAB": ("1M",)}
FULL = {"TLABs": TLABS, "PLAB": PLABS, "CLAB": CLABS}

YOUNG, MOST = "600m", "1200m"
KEPT_CLAB = "reserve kept, CLAB"  # the buffers alone: C2's prefetch reserve stays in each TLAB


def sizes(options: argparse.Namespace) -> dict[str, tuple[str, ...]]:
    return FULL if options.full else QUICK if options.smoke else CHOSEN


def program(options: argparse.Namespace) -> Program:
    """Groups of files to warm up, and that count."""
    warm, groups, seconds = ("4", "4", 5.0) if options.smoke else ("36", "40", 8.0)
    return Program(("Compile", "ARCHIVE", "LIBRARY", str(threads()), warm, groups), seconds)


def base(size: str) -> str:
    return f"stock, TLAB {size}"


def subject(size: str, kind: str, buffer: str) -> str:
    return f"TLAB {size}, {kind} {buffer}"


def cells(options: argparse.Namespace) -> list[Cell]:
    what, chosen = program(options), sizes(options)
    found = []
    for t in reversed(chosen["TLABs"]):  # what is compared runs close together
        flags = (*heap(YOUNG, MOST), *tlab(t))
        found.append(Cell(base(t), STOCK, flags, what))
        found += [Cell(subject(t, "CLAB", s), PATCHED, (*flags, *clab(s)), what) for s in chosen["CLAB"]]
        found.append(Cell(subject(t, KEPT_CLAB, chosen["CLAB"][-1]), PATCHED, (*flags, *clab(chosen["CLAB"][-1]), *KEEP_RESERVE), what))
        found += [Cell(subject(t, "PLAB", s), PATCHED, (*flags, *plab(s)), what) for s in chosen["PLAB"]]
    if not options.smoke:
        flags = heap(YOUNG, MOST, "G1")
        found += [Cell(f"G1, {base(t)}", STOCK, (*flags, *tlab(t)), what) for t in ("16K", GROWING)]
        found += [Cell(f"G1, {way}, TLAB {t}", PATCHED, (*flags, *tlab(t), *more), what) for t in ("16K", GROWING)
                  for way, more in (("on", ON), (KEPT, KEEP_RESERVE))]
    return found


def _columns(options: argparse.Namespace) -> list[tuple[str, str]]:
    return [*((kind, s) for kind in ("PLAB", "CLAB") for s in sizes(options)[kind]), (KEPT_CLAB, sizes(options)["CLAB"][-1])]


def _speedups(options: argparse.Namespace, page: Report, results: Rounds, growing: bool) -> None:
    rows = []
    for t in sizes(options)["TLABs"]:
        under = base(GROWING) if growing else base(t)
        own = shown(over(results, base(t), under)) if growing else number((middle(results, base(t)) or 0) / 1e3)
        rows.append([t, own, *(shown(over(results, subject(t, *c), under)) for c in _columns(options))])
    head = "TLAB only" if growing else "TLAB only, thousand lines/s"
    page.table(["TLAB", head, *(f"{kind} {s}" for kind, s in _columns(options))], rows)


def _plot(options: argparse.Namespace, page: Report, results: Rounds, figure: int) -> None:
    tlabs = sizes(options)["TLABs"]

    def draw(axes: list[Any]) -> None:
        for axis, kind in zip(axes, ("PLAB", "CLAB"), strict=True):
            under = [base(t) if figure == 2 else base(GROWING) for t in tlabs]
            lines = {size: [over(results, subject(t, kind, size), b) for t, b in zip(tlabs, under, strict=True)] for size in sizes(options)[kind]}
            speedups(axis, f"TLAB and {kind}", tlabs, lines, "TLABs only" if figure == 2 else "growing TLABs")
            alone = [over(results, base(t), b) for t, b in zip(tlabs, under, strict=True)]
            axis.plot([s.median if s else float("nan") for s in alone], "k--", lw=1, label="no level between")
            axis.legend(fontsize=8)
            plain_numbers(axis.yaxis)

    page.panels(f"jdk-javac-figure{figure}", 1, 2, draw)


def _means(options: argparse.Namespace, results: Rounds, kinds: tuple[str, ...], tlabs: tuple[str, ...]) -> float | None:
    return mean(over(results, subject(t, kind, s), base(t)) for kind in kinds for t in tlabs for s in sizes(options)[kind])


def _figures(options: argparse.Namespace, page: Report, results: Rounds) -> None:
    tlabs = sizes(options)["TLABs"]
    page.say("Figure 2: speed-up over TLABs of the same size on the stock JVM.")
    _speedups(options, page, results, growing=False)
    _plot(options, page, results, 2)
    small, large = (_means(options, results, ("CLAB", "PLAB"), (t,)) for t in (tlabs[1] if len(tlabs) > 2 else tlabs[0], tlabs[-2]))
    if small is not None and large is not None and len(tlabs) > 3:
        page.finding(small >= large, f"smaller TLABs gain more (paper): {small:.2f} with {tlabs[1]}, {large:.2f} with {tlabs[-2]}.",
                "this compiler spends little of its time on refills, so differences are within the noise")
    clabs, plabs = (_means(options, results, (kind,), tlabs) for kind in ("CLAB", "PLAB"))
    if clabs is not None and plabs is not None:
        page.finding(clabs >= plabs, f"CLABs are on average slightly better than PLABs (paper): {clabs:.3f} against {plabs:.3f}.")
    page.say("Figure 3: the same over growing TLABs on the stock JVM.")
    _speedups(options, page, results, growing=True)
    _plot(options, page, results, 3)
    best = max((s for s in (over(results, subject("16K", "CLAB", c), base(GROWING)) for c in sizes(options)["CLAB"]) if s),
               key=lambda s: s.median, default=None)
    if best is not None:
        page.finding(best.median >= 0.97, f"small TLABs of one size on CLABs do as well as growing ones (paper): 16K at best {best}.")


def _foreign(options: argparse.Namespace, page: Report, results: Rounds, kind: str, level: str, paper: dict[str, Any], order: tuple[str, ...]) -> None:
    chosen = sizes(options)

    def cell(t: str, size: str) -> str:
        theirs = paper[t][order.index(size)] if t in paper else None
        found = foreign_percent(results, subject(t, kind, size), level)
        ours = LEFT_OUT if found is None else f"{found:.2f}"
        return f"{ours} ({LEFT_OUT if theirs is None else f'{theirs:.2f}'})"

    page.table(["TLAB", *(f"{kind} {s}" for s in chosen[kind])], [[t, *(cell(t, s) for s in chosen[kind])] for t in chosen["TLABs"]])


def _tables(options: argparse.Namespace, page: Report, results: Rounds) -> None:
    page.say("Table II: foreign allocations on CLABs in percent of the TLABs taken, ours (paper's). The paper counts both what a moved thread "
             "took and what came from a neighbour's buffer, so do we; without TLABs the JVM does not count requests.")
    _foreign(options, page, results, "CLAB", "core", TABLE_2, CLABS)
    found = [foreign_percent(results, subject(t, "CLAB", s), "core") for t in sizes(options)["TLABs"] for s in sizes(options)["CLAB"]]
    most = max((f for f in found if f is not None), default=None)
    if most is not None:
        page.finding(most <= 2.81, f"foreign allocations are rare (paper: 0.00 to 2.81 % on CLABs): at most {most:.2f} %.",
                "few TLABs are taken from a buffer where they are large, so what neighbours give at the end of the space is a large part of all")
    caches = {path.read_text() for path in Path("/sys/devices/system/cpu").glob("cpu[0-9]*/cache/index3/id")}
    if len(caches) < 2:
        page.say("Table I, foreign allocations on PLABs, is left out: all cores share one last-level cache, so there is one PLAB and nothing is "
                 "foreign. The PLAB's speed-ups say what a buffer costs that all share, nothing of what one per cache would gain.")
        return
    page.say("Table I: the same on PLABs.")
    _foreign(options, page, results, "PLAB", "llc", TABLE_1, PLABS)


def report(options: argparse.Namespace, page: Report, results: Rounds) -> None:
    page.head("javac: hierarchical allocation buffers")
    page.say(f"The JDK's compiler in its process, {threads()} threads (2 x cores), the sources of Lucene's core in groups of 12 files; the same "
             f"groups in each run, counted after a warm-up. Parallel, a heap of {MOST}, young space {YOUNG}. Speed-up is in lines per second: the "
             "median of the ratios within a round, and quartiles. The paper ran SPECjvm2008 javac with 80 threads on 40 cores, young space 10 GB. "
             f"{KEPT_CLAB}: the buffers alone, C2's prefetch reserve stays in each TLAB. "
             "Buffers have the size they are given whatever part of the young space that is (HABMaxEdenPercent=0). "
             f"A/A: {shown(over(results, AGAIN, base(GROWING)))}, growing TLABs.")
    _figures(options, page, results)
    _tables(options, page, results)
    if not options.smoke:
        page.say("The same on G1, buffers of the default size; over the stock JVM with growing TLABs.")
        rows = [[name, shown(over(results, name, f"G1, {base(GROWING)}"))]
                for name in (f"G1, {base('16K')}", *(f"G1, {way}, TLAB {t}" for t in ("16K", GROWING) for way in ("on", KEPT)))]
        page.table(["G1", "speed-up"], rows)
    details(page, results, 1e3, "thousand lines/s")


EXPERIMENT = Experiment("javac", cells, report, lambda rounds: max(1, rounds - 1))
