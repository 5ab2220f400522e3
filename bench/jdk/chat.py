# SPDX-License-Identifier: MIT OR Apache-2.0
"""[MP-RCS] Figure 10 and Table 2: a chat server and its clients, hundreds of threads that mostly sleep, in a small young space."""

import argparse
from typing import Any

from cells import FOREGROUND, Cell, Experiment, Program
from interleave import Rounds, Spread
from jvms import CORE, FLIP, GROWING, PATCHED, STOCK, heap, tlab
from report import Report
from shown import RATE, at_least, at_most, details, middle, noise, number, over, per_operation, rate_of, shown

OLD = 64  # MiB, as in the paper
LAB = "64K"
MANY, FEW = 1000, 200
PAUSE = 5  # ms
THREAD, BY_CORE, BY_FLIP = "thread", "core", "flip"

# The paper's columns: 10 rooms by thread, by core, flip; 50 rooms the same. Client and server.
Row = tuple[str, str, tuple[float, ...], tuple[float, ...]]


TABLE_2: tuple[Row, ...] = (
    ("young collections", "collections", (176.2, 11.1, 13.1, 958, 55.3, 58), (177.7, 8, 8.3, 1297.8, 43.2, 44.7)),
    ("time in collections, ms", "pause_ms", (143.5, 12.1, 13.6, 3195.7, 278.1, 283), (155.6, 9.6, 10.8, 4142.8, 155.2, 187.7)),
    ("before which by thread", "by_thread", (176.2, 0, 3.1, 958, 0, 3), (177.7, 0, 1, 1297.8, 0, 1)),
    ("before which by core", "by_core", (0, 11.1, 10, 0, 55.3, 55), (0, 8, 7.3, 0, 43.2, 43.7)),
    ("LABs", "labs", (10486.5, 700.3, 663.3, 57990.7, 3044.3, 3005.8), (10565.7, 540.9, 463.5, 79499.2, 2430.7, 2336.9)),
    ("buffers of the cores", "core.refills", (0, 701.2, 528.3, 0, 3044.5, 2881.1), (0, 541.4, 409.4, 0, 2430.9, 2282.1)),
    ("MiB wasted in partially used LABs", "wasted_mib", (641.1, 0.937, 7.818, 3576.6, 2.792, 9.262),
     (652.9, 0.7855, 3.4797, 4943.16, 4.5266, 7.1105)),
)


def name(young: int, by: str, lab: str, threads: int, pause: int = PAUSE) -> str:
    return f"{young} MiB, by {by}, LABs {lab}, {threads} threads, {pause} ms"


def _buffers(lab: str) -> tuple[str, ...]:
    return () if lab == GROWING else (f"-XX:HABCoreSize={lab.lower()}", "-XX:HABMaxEdenPercent=0")


def _cell(options: argparse.Namespace, young: int, by: str, lab: str, threads: int, pause: int = PAUSE) -> Cell:
    flags = (*heap(f"{young}m", f"{young + OLD}m"), FOREGROUND, "-Xss256k", *tlab(lab))
    if by != THREAD:
        flags += (*(CORE if by == BY_CORE else FLIP), *_buffers(lab))
    warm, measured = (0.3, 0.5) if options.smoke else (0.8, 2.0)
    words = ("Chat", str(threads), str(pause), str(warm), str(measured), "JAVA")
    what = Program(words, warm + measured + 0.6 + threads / 1e3)
    return Cell(name(young, by, lab, threads, pause), STOCK if by == THREAD else PATCHED, flags, what)


def spaces(options: argparse.Namespace) -> tuple[int, ...]:
    return (4,) if options.smoke else (2, 4, 8)


def labs(options: argparse.Namespace) -> tuple[str, ...]:
    return (LAB, GROWING) if options.smoke else ("4K", "16K", LAB, "128K", "512K", GROWING) if options.full else (LAB, "512K", GROWING)


def counts(options: argparse.Namespace) -> tuple[int, ...]:
    return (FEW,) if options.smoke else (FEW, MANY)


def pauses(options: argparse.Namespace) -> tuple[int, ...]:
    return () if options.smoke else (1, 50)


def cells(options: argparse.Namespace) -> list[Cell]:
    most = counts(options)[-1]
    found = {}

    def add(*words: Any) -> None:
        cell = _cell(options, *words)
        found[cell.name] = cell

    for young in spaces(options):
        for lab in reversed(labs(options)):
            for by in (THREAD, BY_CORE):
                for threads in counts(options) if young == 4 or options.full else (most,):
                    add(young, by, lab, threads)
    for threads in counts(options):
        for lab in (GROWING, LAB):
            add(4, BY_FLIP, lab, threads)
    for pause in pauses(options):
        for by, lab in ((THREAD, GROWING), (THREAD, LAB), (BY_CORE, GROWING), (BY_FLIP, GROWING)):
            add(4, by, lab, most, pause)
    if not options.smoke:
        for by in (THREAD, BY_CORE, BY_FLIP):
            add(4, by, GROWING, 2000)
    return list(found.values())


def per_message(results: Rounds, ours: str, base: str, key: str = "collections") -> Spread | None:
    """How many times as many there are for the same number of messages."""
    for values in (v for n in (ours, base) for v in results.get(n, ()) if v):
        values[f"{key} a message"] = (values[key] + values[f"server.{key}"]) / max(1.0, values["operations"])
    return over(results, ours, base, f"{key} a message")


def _figure_10(options: argparse.Namespace, page: Report, results: Rounds) -> None:
    most = counts(options)[-1]
    page.say(f"Figure 10: messages per second, in thousands; {most} threads.")
    columns = [(young, by) for young in spaces(options) for by in (THREAD, BY_CORE)]
    rates = {(lab, young, by): middle(results, name(young, by, lab, most)) for lab in labs(options) for young, by in columns}
    texts = {key: number(None if rate is None else rate / 1e3) for key, rate in rates.items()}
    rows = [[lab, *(texts[lab, young, by] for young, by in columns)] for lab in labs(options)]
    page.table(["LABs", *(f"{young} MiB by {by}" for young, by in columns)], rows)

    def line(young: int, by: str, lab: str) -> list[tuple[int, float]]:
        return [(n, rate / 1e3) for n in counts(options) if (rate := middle(results, name(young, by, lab, n))) is not None]

    def draw(axes: list[Any]) -> None:
        for axis, (young, by) in zip(axes, columns, strict=True):
            for lab in labs(options):
                axis.plot(*zip(*line(young, by, lab), strict=True), marker="o", label=lab)
            highest = max((rate for way in (THREAD, BY_CORE) for lab in labs(options) for _, rate in line(young, way, lab)), default=1)
            axis.set(title=f"{young} MiB, by {by}", xlabel="threads", ylabel="thousand messages per second", ylim=(0, 1.3 * highest))
            axis.legend(fontsize=8, ncols=3)

    page.panels("jdk-chat-figure10", len(spaces(options)), 2, draw)
    for young in spaces(options):
        spreads = {}
        for by in (THREAD, BY_CORE):
            here = [rate for lab in labs(options) if (rate := rates[lab, young, by]) is not None]
            if len(here) == len(labs(options)):
                spreads[by] = max(here) / min(here)
        if len(spreads) == 2:
            page.finding(spreads[BY_CORE] < spreads[THREAD], f"{young} MiB: by core, the size matters less (paper): the best does "
                         f"{spreads[BY_CORE]:.2f} of the worst, by thread {spreads[THREAD]:.2f}.", "messages cost much more here than collections do")
    gain = over(results, name(4, BY_CORE, GROWING, most), name(4, THREAD, GROWING, most))
    if gain is not None:
        page.finding(gain.median > 1, f"with the default sizes by core gains (paper: up to 15 %): {gain}.")


def _table_2(options: argparse.Namespace, page: Report, results: Rounds) -> None:
    page.say("Table 2: LABs of 64 KiB, young space of 4 MiB. Ours for a million messages that users got (the paper's for its whole run; so "
             "compare columns with each other). By thread is the stock JVM. LABs are TLABs and buffers of the cores; under flip TLABs come from "
             "these and both count.")
    ways = (THREAD, BY_CORE, BY_FLIP)
    for side, (title, prefix) in enumerate((("clients", ""), ("server", "server."))):
        rows = []
        for what, key, *paper in TABLE_2:
            theirs = paper[side]
            row = [what]
            for i, threads in enumerate(counts(options)):
                for j, by in enumerate(ways):
                    row.append(f"{number(per_operation(results, name(4, by, LAB, threads), key, prefix=prefix))} ({number(theirs[3 * i + j])})")
            rows.append(row)
        page.table([title, *(f"{n // 20} rooms, {by}" for n in counts(options) for by in ways)], rows)


def _pauses(options: argparse.Namespace, page: Report, results: Rounds) -> None:
    most = counts(options)[-1]
    page.say(f"Pauses between what a user says, {most} threads: messages over the stock JVM's default sizing; collections for the same number "
             "of messages over the same.")
    ways = ((THREAD, LAB), (BY_CORE, GROWING), (BY_FLIP, GROWING))
    rows = []
    for pause in sorted((PAUSE, *pauses(options))):
        base = name(4, THREAD, GROWING, most, pause)
        row = [f"{pause} ms", rate_of(results, base)]
        for by, lab in ways:
            ours = name(4, by, lab, most, pause)
            row.append(f"{shown(over(results, ours, base))}; {shown(per_message(results, ours, base))}")
        rows.append(row)
    page.table(["pause", "stock, thousand/s", *(f"by {by}, LABs {lab}" for by, lab in ways)], rows)


def _checks(page: Report, results: Rounds, most: int) -> None:
    default, fixed = name(4, THREAD, GROWING, most), name(4, THREAD, LAB, most)
    for by, theirs in ((BY_CORE, 55.3), (BY_FLIP, 58)):
        ours = name(4, by, GROWING, most)
        few = per_message(results, ours, fixed)
        at_most(page, f"chat, {most} threads: collections by {by} over stock with TLABs of 64 KiB", few, 0.1)
        at_most(page, f"chat, {most} threads: collections by {by} over stock", per_message(results, ours, default), 0.5)
        at_least(page, f"chat, {most} threads: messages by {by} over stock", over(results, ours, default, RATE), 1.0)
        at_least(page, f"chat, {most} threads: messages by {by} over stock with TLABs of 64 KiB", over(results, ours, fixed, RATE), 1.0)
        if few is not None:
            page.finding(few.median <= 0.1, f"threads that sleep collect far less by {by} (paper: {theirs:g} against 958 collections): {few}.")


def report(options: argparse.Namespace, page: Report, results: Rounds) -> None:
    most = counts(options)[-1]
    page.head("Chat: threads that sleep")
    page.say("A server and its clients, two processes on the same JVM with the same flags and a thread for each user in both; 20 users a room. "
             f"A user says something of some 70 bytes, waits until it comes back, and pauses for {PAUSE} ms; everybody in the room gets it. "
             f"Parallel, an old generation of {OLD} MiB. By thread is the stock JVM; LABs of the core have the size "
             f"that TLABs have in the same line, {GROWING} is either's default. By core TLABs are short and have no prefetch reserve. "
             f"A/A: {noise(results)}.")
    _figure_10(options, page, results)
    _table_2(options, page, results)
    _pauses(options, page, results)
    _checks(page, results, most)
    details(page, results)


EXPERIMENT = Experiment("chat", cells, report, lambda rounds: max(1, rounds - 1))
