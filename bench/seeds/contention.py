# SPDX-License-Identifier: MIT OR Apache-2.0
"""Experiments of "Why Java's TLABs are so important" (Sadiq Jaffer): a pointer that all threads move, and buffers of their own."""

import argparse
import json
import os

import jvm
from interleave import Rounds, Spread, Subject, Values, interleaved, measured, median, ratio, spread
from interleave import run as run_program
from report import Report, plain_numbers

SIZES = (16, 48, 144)
WAYS = {
    "cas": "shared, cas",
    "add": "shared, add",
    "buffer": "per thread",
    "lab_thread": "engine, thread",
    "lab_core": "engine, core, cs",
    "lab_core_cas": "engine, core, cas",
}

# Objects per second, millions, i7-4770 with four cores and eight hardware threads, JDK 13; kind, threads, bytes.
ARTICLE = {
    ("TLAB", 1): {16: 273.2, 48: 170.9, 144: 55.8},
    ("TLAB", 4): {16: 485.0, 48: 172.7, 144: 56.9},
    ("no TLAB", 1): {16: 100.8, 48: 84.7, 144: 48.1},
    ("no TLAB", 4): {16: 12.03, 48: 11.82, 144: 11.70},
}
ARTICLE_RETRIES = 1.73  # per object with four threads: 2.732 locked loads


def thread_counts() -> tuple[int, ...]:
    return tuple(sorted({1, 4, len(os.sched_getaffinity(0))}))


def _key(threads: int, size: int) -> str:
    return f"{threads}/{size}"


def _measure(options: argparse.Namespace, kind: str) -> Values:
    threads, size = kind.split("/")
    program = str(options.build / "bench" / "seeds" / "bench_contention")
    objects, turns = ("20000", "1") if options.smoke else ("4000000", "5")
    values: Values = json.loads(run_program(Subject(kind), [program, threads, size, objects, turns]))
    return values


def _native(options: argparse.Namespace) -> Rounds:
    kinds = [Subject(_key(t, s)) for t in thread_counts() for s in SIZES]
    return interleaved(kinds, options.rounds, lambda s: _measure(options, s.name))


def _counts(results: Rounds) -> list[int]:
    """Those measured: with --stored it may have been another machine."""
    return sorted({int(key.split("/")[0]) for key in results if "/" in key})


def _title(threads: int, size: int) -> str:
    return f"{threads} thread{'s' if threads > 1 else ''}, {size} bytes"


def _native_table(page: Report, results: Rounds) -> None:
    page.say("Millions of objects per second, all threads together, each object's header written and the rest zeroed. Shared: "
             "the pointer of the space itself, moved by compare-and-swap (cas) or atomic addition; per thread: plain code for a "
             "buffer of each thread; engine: terrace/lab.h, buffers of threads, and of cores by critical sections (cs) and by "
             "compare-and-swap. Buffers have 64 KiB. The space is touched before and not collected while it is measured. Median "
             "of the rounds; shared / per thread: of the ratios within the rounds (quartiles).")
    rows: list[list[object]] = []
    for threads in _counts(results):
        for size in SIZES:
            key = _key(threads, size)
            rows.append([_title(threads, size), *(f"{median(results, key, way):,.0f}" for way in WAYS),
                         ratio(results, key, "cas", key, "buffer"), f"{median(results, key, 'cas_retries'):.2f}"])
    page.table(["C++", *WAYS.values(), "shared cas / per thread", "retries"], rows)

    def draw(axes) -> None:  # type: ignore[no-untyped-def]
        counts = _counts(results)
        for axis, size in zip(axes, SIZES, strict=True):
            for way, text in WAYS.items():
                style = "--" if way in ("cas", "add") else "-"
                axis.plot(counts, [median(results, _key(t, size), way) for t in counts], style, marker="o", label=text)
            axis.set(title=f"{size} bytes", yscale="log", xlabel="threads", ylabel="millions of objects per second")
            axis.set_xticks(counts)
            plain_numbers(axis.yaxis, steps=(1, 2, 5))
        axes[0].legend(fontsize=8)

    page.panels("seeds-contention", 1, 3, draw)


def _article_ratio(kind: tuple[str, int], base: tuple[str, int], size: int = 16) -> float:
    return ARTICLE[kind][size] / ARTICLE[base][size]


def _alone(page: Report, who: str, found: Spread) -> None:
    article = _article_ratio(("no TLAB", 1), ("TLAB", 1))
    page.finding(found.median < 0.75, f"{who}: one thread alone pays for the atomic instruction (article: {article:.2f} of the "
                 f"rate with a buffer, at 16 bytes): {found}.",
                 "an uncontended locked instruction is cheap on this processor, and the bandwidth of the memory bounds both")


def _together(page: Report, who: str, shared: Spread, local: Spread) -> None:
    down, up = _article_ratio(("no TLAB", 4), ("no TLAB", 1)), _article_ratio(("TLAB", 4), ("TLAB", 1))
    page.finding(shared.median < 0.5, f"{who}: with four threads the shared pointer is slower than with one (article: {down:.2f} "
                 f"of its rate, at 16 bytes): {shared}.",
                 "a core keeps the line for several objects in a row before another one gets it")
    page.finding(local.median > 1.2, f"{who}: buffers gain from threads (article: {up:.2f}): {local} with four.",
                 "one thread comes close to the bandwidth of the memory, or other programs had the cpus")


def _same_for_all_sizes(page: Report, who: str, rates: list[Spread]) -> None:
    medians = [r.median for r in rates]
    page.finding(max(medians) / min(medians) < 1.5,
                 f"{who}: contended, objects per second do not depend on their size (article: 11.7 to 12.0 million): "
                 f"{', '.join(f'{r.median:.1f} ({r.low:.1f}-{r.high:.1f})' for r in rates)} million at 16, 48 and 144 bytes.",
                 "how long a core keeps the pointer's line depends on what it does between two objects and on how many threads "
                 "run at the same moment")


def _native_findings(page: Report, results: Rounds) -> None:
    one, four = _key(1, 16), _key(4, 16)
    _alone(page, "C++", ratio(results, one, "cas", one, "buffer"))
    _together(page, "C++", ratio(results, four, "cas", one), ratio(results, four, "buffer", one))
    _same_for_all_sizes(page, "C++", [spread(v["cas"] for v in results[_key(4, s)]) for s in SIZES])
    retries = median(results, four, "cas_retries")
    page.finding(retries > 0.5, f"C++: a compare-and-swap fails often (article: {ARTICLE_RETRIES} times per object): "
                                f"{retries:.2f} times.",
                 "nothing but the object's stores is between load and compare-and-swap, so who has the line usually still has it; "
                 "what is waited for is the line, not the next attempt")
    many = max(_counts(results))
    rates = {s: ratio(results, _key(many, s), "lab_core", _key(many, s), "buffer") for s in SIZES}
    over = ratio(results, _key(many, 16), "lab_core", _key(many, 16), "cas")
    page.say("The core's buffers of the engine, which need no memory per thread, by critical sections and a call each: with "
             f"{many} threads {', '.join(f'{r} at {s} bytes' for s, r in rates.items())} of the rate of a buffer per thread, "
             f"inline; {over} times that of the shared pointer at 16 bytes.")


def _jvm_table(page: Report, results: Rounds) -> None:
    rows: list[list[object]] = []
    for threads in _counts(results):
        for size in SIZES:
            with_, without = jvm.name("TLAB", threads), jvm.name("no TLAB", threads)
            key = f"rate/{size}"
            article = [f"{ARTICLE[kind, threads][size]:.1f}" if (kind, threads) in ARTICLE else "" for kind in jvm.KINDS]
            there = f"{_article_ratio(('no TLAB', threads), ('TLAB', threads), size):.2f}" if article[0] else ""
            worst = max(v[f"collecting/{size}"] for kind in (with_, without) for v in results[kind])
            rows.append([_title(threads, size), *article, there,
                         f"{median(results, with_, key):.1f}", f"{median(results, without, key):.1f}",
                         ratio(results, without, key, with_), f"{median(results, with_, f'bytes/{size}'):.0f}",
                         f"{100 * worst:.1f} %"])
    page.table(["JVM", "article: TLAB", "article: none", "none / TLAB", "here: TLAB", "here: none", "none / TLAB",
                "bytes, said by the JVM", "collecting, at most"], rows)

    def draw(axes) -> None:  # type: ignore[no-untyped-def]
        for axis, size in zip(axes, SIZES, strict=True):
            for kind, colour in zip(jvm.KINDS, ("#2e7d32", "#b5442e"), strict=True):
                counts = [t for t in _counts(results) if (kind, t) in ARTICLE]
                axis.plot(counts, [median(results, jvm.name(kind, t), f"rate/{size}") for t in counts], color=colour, marker="o",
                          label=f"{kind}, here")
                axis.plot(counts, [ARTICLE[kind, t][size] for t in counts], color=colour, marker="o", ls="--",
                          label=f"{kind}, article")
            axis.set(title=f"{size} bytes", yscale="log", xlabel="threads", ylabel="millions of objects per second")
            axis.set_xticks(counts)
            plain_numbers(axis.yaxis, steps=(1, 2, 5))
        axes[0].legend(fontsize=8)

    page.panels("seeds-jvm", 1, 3, draw)


def _jvm(options: argparse.Namespace, page: Report) -> None:
    if options.stored and not (options.out / "seeds-jvm.json").exists():
        page.say("On the JVM: not run.")
        return
    try:
        results = measured(options, "seeds-jvm", lambda: jvm.measure(options, thread_counts()))
    except jvm.NotRun as why:
        page.say(f"On the JVM: not run: {why}.")
        return
    page.say(f"The article's own benchmark by JMH: millions of objects per second with {jvm.HEAP}; article: i7-4770, JDK 13; "
             f"here: {jvm.version()}. (From JDK 20 on, code without TLABs calls the collector for each object; up to 19 it moves "
             "the shared pointer itself.)")
    _jvm_table(page, results)
    one, four = jvm.name("no TLAB", 1), jvm.name("no TLAB", 4)
    _alone(page, "JVM", ratio(results, one, "rate/16", jvm.name("TLAB", 1)))
    _together(page, "JVM", ratio(results, four, "rate/16", one), ratio(results, jvm.name("TLAB", 4), "rate/16", jvm.name("TLAB", 1)))
    _same_for_all_sizes(page, "JVM", [spread(v[f"rate/{s}"] for v in results[four]) for s in SIZES])


def run(options: argparse.Namespace, page: Report) -> None:
    page.head("Write contention")
    results = measured(options, "seeds-contention", lambda: _native(options))
    _native_table(page, results)
    _native_findings(page, results)
    _jvm(options, page)
