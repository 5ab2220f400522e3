# SPDX-License-Identifier: MIT OR Apache-2.0
"""The article's loop of malloc and free: 4 bytes with one thread and with 16, all cached sizes, and sizes beyond the cache."""

import argparse
import json
import os
from collections.abc import Sequence

from interleave import AGAIN, Rounds, Spread, Subject, Values, interleaved, measured, median, names, ratio, spread
from interleave import run as run_program
from report import Report, plain_numbers

CACHED = (8, 16, 32, 48, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448)  # by the article's libumem, 64 bits
BEYOND = (512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072, 262144, 524288, 1048576)
THREADS = 16
LOCK, ONE_LOCK, TO_448 = "glibc, no cache", "glibc, no cache, one lock", "glibc, cache to 448 bytes"

# "Tight 4 byte allocation loop", amd64: nanoseconds of 512 Mi pairs.
ARTICLE_PAIRS = 512 * 2**20
ARTICLE = {"libc, one lock": 32470572792, "libumem, a lock per cpu": 47828105321, "libumem, cache per thread": 8980269581}
ARTICLE_BEYOND = 10  # ns, at most, that the cache costs a pair of 1 KiB


def article_ns(name: str) -> float:
    return ARTICLE[name] / ARTICLE_PAIRS


def _short(size: int) -> str:
    return f"{size >> 20}M" if size >= 2**20 else f"{size >> 10}K" if size >= 2**10 else str(size)


def _nanoseconds(s: Spread) -> str:
    return f"{s.median:.1f} ns ({s.low:.1f} to {s.high:.1f})"


def _tuned(name: str, *settings: str) -> Subject:
    return Subject(name, {"GLIBC_TUNABLES": ":".join(f"glibc.malloc.{s}" for s in settings)})


def without_cache() -> Subject:
    return _tuned(LOCK, "tcache_count=0")


def subjects(present: Sequence[Subject]) -> list[Subject]:
    without = [without_cache(), _tuned(ONE_LOCK, "tcache_count=0", "arena_max=1")]
    return [*present, *without, _tuned(TO_448, "tcache_max=448")]


def _measure(options: argparse.Namespace, subject: Subject) -> Values:
    """One thread stays on one cpu, as in the article; many threads go where they like."""
    program = str(options.build / "bench" / "seeds" / "bench_pair_loop")
    milliseconds = "1" if options.smoke else "20"
    one_cpu = {max(os.sched_getaffinity(0))}
    sizes = [str(size) for size in (4, *CACHED, *BEYOND)]
    alone: Values = json.loads(run_program(subject, [program, "1", milliseconds, *sizes], one_cpu))
    together: Values = json.loads(run_program(subject, [program, str(THREADS), "5" if options.smoke else "100", "4"]))
    return {f"1/{k}": v for k, v in alone.items()} | {f"{THREADS}/{k}": v for k, v in together.items()}


def _four_bytes(page: Report, results: Rounds) -> None:
    cpus = os.cpu_count() or 1
    page.say("A pair of malloc and free of 4 bytes, nanoseconds, medians of the rounds. One thread alone in its process, and "
             f"{THREADS} threads on {cpus} cpus: as long as each of them sees it take (they share the cpus, so "
             f"{THREADS / cpus:.0f} times as much is no loss; what other programs take of the cpus comes on top), and in cpu "
             "time. Ratio: cpu time with one thread over glibc's (quartiles).")
    rows: list[list[object]] = [[f"article: {name}", f"{article_ns(name):.1f}", "", "", "", ""] for name in ARTICLE]
    for name in names(results):
        wall, cpu = median(results, name, f"{THREADS}/ns/4"), median(results, name, f"{THREADS}/cpu_ns/4")
        growth = ratio(results, name, f"{THREADS}/cpu_ns/4", name, "1/cpu_ns/4")
        rows.append([name, f"{median(results, name, '1/cpu_ns/4'):.1f}", ratio(results, name, "1/cpu_ns/4", "glibc"),
                     f"{wall:.1f}", f"{cpu:.1f}", growth])
    again = ratio(results, AGAIN, "1/cpu_ns/4", "glibc")
    rows.append(["glibc again", f"{median(results, AGAIN, '1/cpu_ns/4'):.1f}", again, "", "", ""])
    page.table(["4 bytes", "1 thread", "over glibc", f"{THREADS} threads, seen", f"{THREADS} threads, cpu",
                f"cpu, {THREADS} / 1"], rows)

    def draw(axes) -> None:  # type: ignore[no-untyped-def]
        for axis, key, title in zip(axes, ("1/cpu_ns/4", f"{THREADS}/cpu_ns/4"), ("one thread", f"{THREADS} threads"), strict=True):
            listed = names(results)[::-1]
            values = [median(results, name, key) for name in listed]
            axis.barh(listed, values, color=["#b5442e" if n == "terrace" else "#6b8cae" for n in listed])
            axis.set(title=f"4 bytes, {title}", xlabel="cpu time of a pair, ns")

    page.panels("seeds-four-bytes", 1, 2, draw)


def _findings_four_bytes(page: Report, results: Rounds) -> None:
    many = f"{THREADS}/cpu_ns/4"
    article = article_ns("libumem, cache per thread") / article_ns("libumem, a lock per cpu")
    gain = ratio(results, "glibc", many, LOCK)
    page.finding(gain.median < 0.8, "a lock that nobody contends for costs more than the work, so a cache of one's own pays "
                 f"(article: {article:.2f} of the time with the lock): glibc with its cache takes {gain} of the time without, in "
                 "a process with threads.",
                 "the lock is one atomic instruction, and glibc's way behind it is short")
    waiting = ratio(results, ONE_LOCK, many, ONE_LOCK, "1/cpu_ns/4")
    page.finding(waiting.median > 2, f"one lock does not bear {THREADS} threads (article: \"rather painful\"; no figure in the "
                 f"text): with one arena a pair takes {waiting} times the cpu time, and "
                 f"{median(results, ONE_LOCK, f'{THREADS}/ns/4'):.0f} ns as a thread sees it.")
    if "terrace" not in names(results):
        return
    growth = ratio(results, "terrace", many, "terrace", "1/cpu_ns/4")
    page.finding(growth.median < 1.25, "a local cache makes the number of threads indifferent (article): terrace, whose caches "
                 f"are the cores' and not the threads', takes {growth} times the cpu time with {THREADS} threads.",
                 "with more threads than cores a sequence is sometimes interrupted, and the caches of first level and branches "
                 "are shared")
    ours = ratio(results, "terrace", "1/cpu_ns/4", LOCK)
    page.say(f"With one thread terrace takes {ours} of the time of glibc without cache, which leaves its lock out there; "
             f"{ratio(results, 'terrace', many, LOCK)} with {THREADS} threads, where it cannot.")


def _plot_sizes(page: Report, results: Rounds) -> None:
    plain = [n for n in names(results) if n not in (ONE_LOCK, TO_448)]

    def draw(axes) -> None:  # type: ignore[no-untyped-def]
        for axis, sizes, title in ((axes[0], CACHED, "sizes that the article's cache held"),
                                   (axes[1], (*CACHED, *BEYOND), "and beyond")):
            for name in plain:
                style = {"lw": 2.5, "zorder": 5} if name == "terrace" else {"lw": 1}
                axis.plot(sizes, [median(results, name, f"1/cpu_ns/{s}") for s in sizes], marker=".", label=name, **style)
            axis.set(title=title, xlabel="bytes", ylabel="cpu time of a pair, ns")
        axes[0].set_ylim(bottom=0)
        axes[1].set(xscale="log", yscale="log")
        plain_numbers(axes[1].yaxis)
        axes[1].set_xticks([16, 256, 4096, 65536, 1048576], [_short(s) for s in (16, 256, 4096, 65536, 1048576)])
        axes[1].set_xticks([], minor=True)
        axes[1].legend(fontsize=8)

    page.panels("seeds-sizes", 1, 2, draw)


def _by_size(page: Report, results: Rounds) -> None:
    page.say("The same loop by size, one thread on one cpu, cpu time of a pair in nanoseconds.")
    shown = (8, 64, 448, 1024, 4096, 16384, 32768, 65536, 262144, 1048576)
    page.table(["bytes", *(_short(s) for s in shown)],
               [[name, *(f"{median(results, name, f'1/cpu_ns/{s}'):.1f}" for s in shown)]
                for name in names(results) if name != ONE_LOCK])
    _plot_sizes(page, results)
    if "terrace" in names(results):
        small = ratio(results, "terrace", "1/cpu_ns/448", "terrace", "1/cpu_ns/8")
        page.finding(small.median > 1.25, "time grows with the size (article: fairly linearly over the cached sizes; the "
                     f"code generated for them compares with constants): terrace takes {small} of the time of 8 bytes at 448.",
                     "the class is looked up in a table, so the size does not matter")


def _beyond(page: Report, results: Rounds) -> None:
    costs = {size: spread(a[f"1/cpu_ns/{size}"] - b[f"1/cpu_ns/{size}"] for a, b in zip(results[TO_448], results[LOCK], strict=True))
             for size in (512, 1024)}
    page.finding(costs[1024].median <= ARTICLE_BEYOND, "sizes beyond the cache pay little for it (article: 8 to 10 ns per pair "
                 f"of 1 KiB): with glibc's cache ending at 448 bytes, a pair of 1,024 takes {_nanoseconds(costs[1024])} more than "
                 f"without any cache, one of 512 {_nanoseconds(costs[512])}.")
    if "terrace" not in names(results):
        return
    times = {size: median(results, "terrace", f"1/cpu_ns/{size}") for size in (8, *BEYOND)}
    within = max(size for size in times if times[size] < 2 * times[8])
    page.say(f"1 KiB is within Terrace's core level: {ratio(results, 'terrace', '1/cpu_ns/1024', 'terrace', '1/cpu_ns/8')} of the "
             "time of 8 bytes.")
    outside = [size for size in BEYOND if size > within]
    if outside:
        size = outside[0]
        page.say(f"Pairs up to {within // 1024} KiB take less than twice the time of 8 bytes. Beyond is a way of its own: at "
                 f"{size // 1024} KiB {times[size]:.0f} ns, {ratio(results, 'terrace', f'1/cpu_ns/{size}', 'glibc')} of glibc's "
                 "time. What the cache costs such a pair is one comparison of the size.")


def run(options: argparse.Namespace, page: Report, present: Sequence[Subject]) -> None:
    chosen = subjects(present)
    results = measured(options, "seeds-pairs", lambda: interleaved(chosen, options.rounds, lambda s: _measure(options, s)))
    _four_bytes(page, results)
    _findings_four_bytes(page, results)
    _by_size(page, results)
    _beyond(page, results)
