# SPDX-License-Identifier: MIT OR Apache-2.0
"""[MP-RCS] section 6: Table 1, Figures 9 and 10, Table 2; and when to cease allocating LABs, the question that 6.3 ends with."""

import argparse
import platform
import sys
from collections.abc import Callable

from experiment import MIB, measure
from interleave import Rounds, median, ratio
from report import ROOT, Report, plain_numbers

BY = ("thread", "core", "flip")
PAUSE = 200  # microseconds of a collection
BLOCK = 20  # microseconds that a source sleeps which blocks
LAB, SPACE = 64 * 1024, 4 * MIB  # of Table 2
RATE = "messages_per_second"


def _association(by: str, lab: str) -> str:
    """Its own kind of buffers only, as in the paper; flip has both."""
    tlab = f" tlab={lab}" if by != "core" else ""
    clab = f" clab={lab} sync=cs" if by != "thread" else ""
    return f"by={by}{tlab}{clab}"


# Table 1.

PAPER_PATH = {"thread_call": 7, "core_cs_call": 17}
FUNCTION = {"thread_call": "lab_from_thread", "core_cs_call": "lab_from_core_cs", "core_cas_call": "lab_from_core_cas",
            "engine_cs": "terrace_lab_allocate_core"}
OBJECT_ROWS = {
    "thread_inline": "the thread's buffer, in line", "core_cs_inline": "the core's, critical sections, in line",
    "core_cas_inline": "the core's, compare-and-swap, in line", "thread_call": "the thread's, a function",
    "core_cs_call": "the core's, critical sections, a function", "core_cas_call": "the core's, compare-and-swap, a function",
    "engine_cs": "the core's, critical sections, the engine's function",
    "engine_cas": "the core's, compare-and-swap, the engine's function",
    "core_cas_two": "one buffer, compare-and-swap in line, two threads at it",
}
CONTROLS = ("thread", "core_cs")


def _path_lengths(options: argparse.Namespace) -> dict[str, int]:
    """Instructions from the entry of a function to its return."""
    sys.path.insert(0, str(ROOT / "tools"))
    import count_fastpath

    binary = str(options.build / "bench" / "lab" / "bench_lab_objects")
    return {way: len(count_fastpath.analyse(name, count_fastpath.disassemble(binary, name)).longest) for way, name in FUNCTION.items()}


def objects(options: argparse.Namespace, page: Report) -> None:
    """Bare: a header is written. Initialised: the object is zeroed, too, as runtimes do."""
    short = "turns=1 objects=1000" if options.smoke else ""
    kinds = {"bare": short, "initialised": f"{short} initialise=1".strip()}
    results = measure(options, "objects", "objects", kinds, 3 * options.rounds)
    page.head("What an object costs: one thread")
    if not results["bare"][0]["sequences"]:
        page.say("There are no restartable sequences here, so nothing to compare.")
        return
    _objects_table(options, page, results, kinds)
    _objects_checks(page, results, kinds)
    _controls(page, results)


def _objects_table(options: argparse.Namespace, page: Report, results: Rounds, kinds: dict[str, str]) -> None:
    lengths = _path_lengths(options) if platform.machine() == "x86_64" else {}
    page.say("Table 1: objects of 48 bytes from a young space of 512 KiB with buffers of 64 KiB, nanoseconds each with the loop around, which "
             "polls for a safepoint; bare (a header is written) and initialised (the rest is zeroed). In line: as a compiler emits it "
             "for an embedder. A function: called for each object, as one stub that all compiled code shares. Ratios are over the thread's "
             "buffer in line. The engine's function by compare-and-swap looks up its core twice, before and after, to count objects "
             "that are foreign; a baseline that does not is the emitted one. Two threads: each object by compare-and-swap from one "
             "buffer, as all would without a level between them and the space.")
    rows = []
    for way, text in OBJECT_ROWS.items():
        row = [text]
        for kind in kinds:
            row += [f"{median(results, kind, way):.2f}", ratio(results, kind, way, kind, "thread_inline")]
        rows.append([*row, lengths.get(way, "-"), PAPER_PATH.get(way, "-")])
    page.table(["from", "bare, ns", "over thread", "initialised, ns", "over thread", "instructions", "paper"], rows)
    more = median(results, "bare", "core_cs_call") - median(results, "bare", "thread_call")
    page.finding(more < 13.9 / 3, f"the core's buffer costs a little more per object (paper: 13.9 cycles, 10.2 instructions): {more:.2f} ns "
                 "as functions" + (f", {lengths['core_cs_call'] - lengths['thread_call']} instructions." if lengths else "."))


def _objects_checks(page: Report, results: Rounds, kinds: dict[str, str]) -> None:
    for kind in kinds:
        for way, name in (("core_cs_inline", "in line"), ("core_cs_call", "a function"), ("engine_cs", "the engine's")):
            over = ratio(results, kind, way, kind, "thread_inline")
            page.check(f"object from the core's buffer by cs over the thread's in line, {kind}, {name}", str(over), "<= 1.3", over.median <= 1.3)
        two = ratio(results, kind, "core_cs_inline", kind, "core_cas_two")
        page.check(f"the same in line, {kind}, over two threads' compare-and-swap on one buffer", str(two), "<= 0.5", two.median <= 0.5)
        one = ratio(results, kind, "core_cs_inline", kind, "core_cas_inline")
        page.check(f"the same in line, {kind}, over compare-and-swap on the core's own", str(one), "<= 0.5", one.median <= 0.5)


def _controls(page: Report, results: Rounds) -> None:
    page.say("Controls, bare and in line: what one and two stores more for each object cost, to a line that is the thread's own. A section that "
             "stores its descriptor for each object, and a 1 to say that the thread allocates, has two more stores than one that finds "
             "its descriptor in place.")
    page.table(["from", "as above, ns", "one store more", "two stores more"],
               [[OBJECT_ROWS[f"{way}_inline"], f"{median(results, 'bare', f'{way}_inline'):.2f}",
                 *(f"{median(results, 'bare', f'{way}_{n}'):.2f}" for n in (1, 2))] for way in CONTROLS])


# Figure 9.


def _busy_table(options: argparse.Namespace, page: Report, experiment: str, counts: tuple[int, ...], common: str, rounds: int) -> Rounds:
    results = measure(options, experiment, "busy",
                      {f"{by}/{n}": f"{common} work=1000 pause_us={PAUSE} threads={n} {_association(by, 'doubling')}"
                       for n in counts for by in BY}, rounds)
    for values in results.values():
        for v in values:
            v["per_million"] = 1e6 * v["collections"] / max(1, v["objects"])  # none in milliseconds on a busy machine
            v["wasted_percent"] = 100 * v["wasted_bytes"] / max(1.0, v["bytes"] + v["wasted_bytes"])
            v["ms_between"] = 1e3 * v["objects"] / max(1.0, v["objects_per_second"]) / max(1.0, v["collections"])

    def three(n: int, key: str) -> str:
        return " / ".join(f"{median(results, f'{by}/{n}', key):.2f}" for by in BY)

    def flipped(n: int) -> str:
        rounds = results[f"flip/{n}"]
        return f"{100 * sum(v['collections_by_core'] for v in rounds) / max(1, sum(v['collections'] for v in rounds)):.0f}"

    page.table(
        ["threads", "by thread, M/s", "core / thread", "flip / thread", "collections", "ms from one to the next", "wasted, %", "flip: by core, %"],
        [[n, f"{median(results, f'thread/{n}', 'objects_per_second') / 1e6:.2f}",
          *(ratio(results, f"{by}/{n}", "objects_per_second", f"thread/{n}") for by in ("core", "flip")),
          three(n, "per_million"), f"{median(results, f'thread/{n}', 'ms_between'):.1f}", three(n, "wasted_percent"), flipped(n)]
         for n in counts],
    )
    return results


def busy(options: argparse.Namespace, page: Report) -> None:
    counts = (1, 4) if options.smoke else (1, 2, 4, 8, 16, 32, 64)
    page.head("Threads that compute: 1 to 64")
    page.say("Figure 9: default sizing (doubling), young space of 4 MiB, about 0.3 microseconds of computing per object. Objects per second, "
             "by core and flip over by thread within a round; collections per million objects, and bytes given up with buffers, by thread / by core / "
             "flip; milliseconds between two collections by thread; the part of flip's collections after which it was by core.")
    results = _busy_table(options, page, "busy", counts, f"young=4M ms={10 if options.smoke else 250}", options.rounds)
    _draw_busy(page, results, counts)
    _busy_findings(page, results, counts)
    page.say("The paper's space lasted for about 250 ms between two collections. The same with one that does:")
    few = (1, 4) if options.smoke else (1, 4, 16, 64)
    large = _busy_table(options, page, "busy-large", few, f"young=96M ms={10 if options.smoke else 1500}", max(1, options.rounds * 3 // 5))
    rate = ratio(large, f"core/{few[-1]}", "objects_per_second", f"thread/{few[-1]}")
    wasted = [median(large, f"{by}/{few[-1]}", "wasted_percent") for by in ("thread", "core")]
    page.finding(rate.median >= 1, f"beyond 16 threads by core is faster (paper): {rate} at {few[-1]}, {wasted[0]:.2f} % wasted by thread and "
                 f"{wasted[1]:.2f} % by core.",
                 "buffers that double up to 64 KiB are a small part of such a space, whoever holds them, so by core saves next to no collections "
                 "and pays more for each object; what a real collector would save with fewer threads' buffers to look at is not simulated")


def _draw_busy(page: Report, results: Rounds, counts: tuple[int, ...]) -> None:
    def draw(axes) -> None:  # type: ignore[no-untyped-def]
        for by in BY:
            label = "flip" if by == "flip" else f"by {by}"
            axes[0].plot(counts, [median(results, f"{by}/{n}", "objects_per_second") / 1e6 for n in counts], marker="o", label=label)
            axes[1].plot(counts, [ratio(results, f"{by}/{n}", "objects_per_second", f"thread/{n}").median for n in counts], marker="o", label=label)
            axes[2].plot(counts, [median(results, f"{by}/{n}", "per_million") for n in counts], marker="o", label=label)
        axes[0].set(ylabel="million objects per second", ylim=(0, None))
        axes[1].set(ylabel="objects per second over by thread")
        axes[2].set(ylabel="collections per million objects")
        for axis in axes:
            axis.set(xscale="log", xlabel="threads")
            axis.set_xticks(counts)
            axis.minorticks_off()
            plain_numbers(axis.xaxis)
            axis.legend()

    page.panels("lab-mprcs-figure9", 1, 3, draw)


def _busy_findings(page: Report, results: Rounds, counts: tuple[int, ...]) -> None:
    most = counts[-1]
    saved = ratio(results, f"core/{most}", "per_million", f"thread/{most}")
    page.finding(saved.median < 1, f"many threads collect less by core (paper: by thread 2 to 5 % of the heap are wasted): {saved} of the "
                 f"collections at {most} threads, {median(results, f'thread/{most}', 'wasted_percent'):.1f} % wasted by thread and "
                 f"{median(results, f'core/{most}', 'wasted_percent'):.1f} % by core.")
    rate = ratio(results, f"core/{most}", "objects_per_second", f"thread/{most}")
    page.finding(rate.median >= 1, f"beyond 16 threads by core is faster (paper): {rate} at {most}.",
                 "4 MiB are full after some milliseconds, so at a collection few threads hold a buffer, and what is "
                 "wasted weighs less than what an object from the core's buffer costs more")
    few = ratio(results, "core/1", "objects_per_second", "thread/1")
    page.finding(few.median < 1, f"with few threads by core is slower (paper): {few} at 1.")


# Figure 10.

POLICIES = ("4K", "16K", "64K", "128K", "512K", "doubling")


def bursty(options: argparse.Namespace, page: Report) -> None:
    smoke = options.smoke
    spaces = (2,) if smoke else (2, 4, 8)
    counts = (40, 100) if smoke else (200, 400, 600, 800, 1000)
    policies = ("16K", "doubling") if smoke else POLICIES
    messages = 20 if smoke else 1000
    names = {f"{by}/{young}/{lab}/{n}": f"young={young}M threads={n} messages={messages} pause_us={PAUSE} {_association(by, lab)}"
             for n in counts for lab in policies for young in spaces for by in ("thread", "core")}
    results = measure(options, "bursty", "bursty", names, max(1, options.rounds * 3 // 5))
    page.head("Threads that sleep: a chat server")
    page.say(f"Figure 10: messages per second, in thousands; a room has 20 threads, a collection takes {PAUSE} microseconds. "
             f"At {counts[-1]} threads:")
    most = counts[-1]
    page.table(["LABs", *(f"{young} MiB by {by}" for young in spaces for by in ("thread", "core"))],
               [[lab, *(f"{median(results, f'{by}/{young}/{lab}/{most}', RATE) / 1e3:.0f}" for young in spaces for by in ("thread", "core"))]
                for lab in policies])

    def draw(axes) -> None:  # type: ignore[no-untyped-def]
        panels = [(young, by) for young in spaces for by in ("thread", "core")]
        best = {young: max(median(results, f"{by}/{young}/{lab}/{n}", RATE) / 1e3 for by in ("thread", "core") for lab in policies for n in counts)
                for young in spaces}
        for axis, (young, by) in zip(axes, panels, strict=True):
            for lab in policies:
                axis.plot(counts, [median(results, f"{by}/{young}/{lab}/{n}", RATE) / 1e3 for n in counts], marker=".", label=lab)
            axis.set(title=f"{young} MiB, by {by}", xlabel="threads", ylabel="thousand messages per second", ylim=(0, 1.3 * best[young]))
            axis.legend(fontsize=8, ncols=3, loc="upper center")

    page.panels("lab-mprcs-figure10", len(spaces), 2, draw)

    def range_of(by: str, young: int) -> float:
        rates = [median(results, f"{by}/{young}/{lab}/{most}", RATE) for lab in policies]
        return max(rates) / min(rates)

    for young in spaces:
        thread, core = range_of("thread", young), range_of("core", young)
        page.finding(core < thread, f"{young} MiB: by core, the policy matters less (paper): the best policy does {core:.2f} of the worst, by "
                     f"thread {thread:.2f}.")
    gains = [ratio(results, f"core/{young}/doubling/{most}", RATE, f"thread/{young}/doubling/{most}").median for young in spaces]
    page.finding(max(gains) > 1, f"with the default policy by core gains (paper: up to 15 %): {100 * (max(gains) - 1):.0f} % at best.")
    if not smoke:
        _worst_policy(options, page, most, messages)


def _worst_policy(options: argparse.Namespace, page: Report, threads: int, messages: int) -> None:
    """Which size of LABs does worst in a small space, with shorter ones at its end and without."""
    fixed = tuple(lab for lab in POLICIES if lab != "doubling")
    spaces = {"2M": "2 MiB", "2500K": "2,500 KiB"}
    ways = {f"{space}/{whole}": f"{text}, {'whole ones only' if whole else 'shorter ones at the end'}"
            for space, text in spaces.items() for whole in (0, 1)}
    common = f"threads={threads} messages={messages} pause_us={PAUSE}"
    names = {f"{way}/{lab}": f"{common} young={way.split('/')[0]} whole={way.split('/')[1]} {_association('thread', lab)}"
             for lab in fixed for way in ways}
    results = measure(options, "whole", "bursty", names, max(1, options.rounds * 3 // 5))

    def rate(way: str, lab: str) -> float:
        return median(results, f"{way}/{lab}", RATE) / 1e3

    page.say("By thread, thousand messages per second: at the end of the space shorter LABs are handed out, down to 1/8 of their size (the "
             "engine's default), or none but whole ones (min_size = size), as in the paper. Of 2 MiB whole LABs leave nothing; of "
             "2,500 KiB something for objects one by one.")
    page.table(["LABs", *ways.values()], [[lab, *(f"{rate(way, lab):.0f}" for way in ways)] for lab in fixed])
    worst = {way: min(fixed, key=lambda lab: rate(way, lab)) for way in ways}
    largest = rate("2500K/1", "512K") / rate("2500K/1", "64K")
    page.finding(largest > 1.2, "LABs of 64K do worst, larger ones better since objects are allocated one by one when no LAB is left (paper, "
                 f"Figure 10(a)): with whole LABs, and a space that is no multiple of them, LABs of 512K do {largest:.2f} of those of 64K, and "
                 f"{worst['2500K/1']} does worst. With a multiple, or with shorter LABs at the end, nothing is left for objects one by one, and "
                 f"{worst['2M/1']} and {worst['2500K/0']} do worst.")


# Table 2. The paper's columns: 10 rooms by thread, by core, flip; 50 rooms the same. The client.


def _labs(v: dict[str, float], key: str) -> float:
    return v[f"thread.{key}"] + v[f"core.{key}"]


Row = tuple[str, Callable[[dict[str, float]], float], tuple[float, ...]]
TABLE_2: tuple[Row, ...] = (
    ("young collections", lambda v: v["collections"], (176.2, 11.1, 13.1, 958, 55.3, 58)),
    ("time in collections, ms", lambda v: 1e3 * v["collection_seconds"], (143.5, 12.1, 13.6, 3195.7, 278.1, 283)),
    ("after which by thread", lambda v: v["collections"] - v["collections_by_core"], (176.2, 0, 3.1, 958, 0, 3)),
    ("after which by core", lambda v: v["collections_by_core"], (0, 11.1, 10, 0, 55.3, 55)),
    ("LABs", lambda v: _labs(v, "labs"), (10486.5, 700.3, 663.3, 57990.7, 3044.3, 3005.8)),
    ("MiB in LABs", lambda v: _labs(v, "lab_bytes") / MIB, (654.7, 33.7, 40.8, 3623.7, 180.2, 187.2)),
    ("transactions, succeeded", lambda v: v["core.transactions"], (0, 701.2, 528.3, 0, 3044.5, 2881.1)),
    ("transactions, failed", lambda v: v["core.failed"], (0, 1.7, 1.3, 0, 1.3, 1.1)),
    ("transactions, invalid", lambda v: v["core.invalid"], (0, 1.4, 1, 0, 0.7, 0.3)),
    ("sidelined", lambda v: v["core.sidelined"], (0, 2.6, 1.5, 0, 1.5, 2)),
    ("MiB sidelined", lambda v: v["core.sidelined_bytes"] / MIB, (0, 0.153, 0.094, 0, 0.094, 0.125)),
    ("sidelined, never used", lambda v: v["core.unused_sidelined"], (0, 0, 0.1, 0, 0, 0.00625)),
    ("MiB of these", lambda v: v["core.unused_sidelined_bytes"] / MIB, (0, 0, 0, 0, 0, 0)),
    ("partially used LABs", lambda v: _labs(v, "partial"), (10687.3, 62.4, 182.3, 59342.8, 298.6, 423.2)),
    ("MiB wasted in these", lambda v: _labs(v, "wasted_bytes") / MIB, (641.1, 0.937, 7.818, 3576.6, 2.792, 9.262)),
)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"


def statistics(options: argparse.Namespace, page: Report) -> None:
    rooms = (2, 4) if options.smoke else (10, 50)
    messages = 50 if options.smoke else 1500
    line = f"messages={messages} pause_us={PAUSE}"
    names = {f"{by}/{r}": f"young=4M threads={20 * r} {line} {_association(by, '64K')}" for r in rooms for by in BY}
    names |= {f"blocking/{by}/{rooms[-1]}": f"young=4M threads={20 * rooms[-1]} {line} block_us={BLOCK} {_association(by, '64K')}" for by in BY[1:]}
    results = measure(options, "statistics", "bursty", names, options.rounds)
    page.head("Threads that sleep: what the buffers did")
    page.say(f"Table 2: LABs of 64 KiB, young space of 4 MiB, {messages:,} messages per room; means of the rounds, ours (paper's, for VolanoMark's "
             "client). Collections' time is simulated. Partially used counts every tail here, also those of a few bytes that are left at a refill. "
             "Under flip, TLABs come from the core's buffers and count there, too.")
    rows = []
    for name, value, paper in TABLE_2:
        cells = []
        for i, r in enumerate(rooms):
            for j, by in enumerate(BY):
                found = [value(v) for v in results[f"{by}/{r}"]]
                cells.append(f"{_number(sum(found) / len(found))} ({_number(paper[3 * i + j])})")
        rows.append([name, *cells])
    page.table(["", *(f"{r} rooms, {by}" for r in rooms for by in BY)], rows)
    most = rooms[-1]
    _arithmetic(page, results, most, messages)
    _blocking(page, results, most)
    counts = {by: median(results, f"{by}/{most}", "collections") for by in BY}
    for by, theirs in (("core", 55.3), ("flip", 58)):
        collections = ratio(results, f"{by}/{most}", "collections", f"thread/{most}")
        wasted = ratio(results, f"{by}/{most}", "wasted_bytes", f"thread/{most}")
        page.finding(collections.median <= 0.1, f"{20 * most} threads collect far less by {by} (paper: {theirs:g} against 958 collections): "
                     f"{counts[by]:.0f} against {counts['thread']:.0f}; {wasted.median:.5f} of the bytes are wasted (paper: "
                     f"{(2.792 if by == 'core' else 9.262) / 3576.6:.5f}).")
        page.check(f"{20 * most} bursty threads: collections by {by} over by thread", f"{collections.median:.4f}", "<= 0.1", collections.median <= 0.1)
        page.check(f"{20 * most} bursty threads: bytes wasted by {by} over by thread", f"{wasted.median:.5f}", "<= 0.01", wasted.median <= 0.01)
    rate = ratio(results, f"core/{most}", RATE, f"thread/{most}")
    page.say(f"Messages per second by core over by thread at {20 * most} threads: {rate}.")


def _arithmetic(page: Report, results: Rounds, rooms: int, messages: int) -> None:
    """What the table's first row says, and what it does not."""
    by_thread = rooms * messages * LAB / SPACE
    found = median(results, f"thread/{rooms}", "collections")
    page.say(f"How many collections there are is arithmetic, and no evidence for the engine. By thread each message is for a thread whose buffer was "
             f"given up at a collection since its last message, so it takes a new one: {rooms} x {messages:,} messages x 64 KiB / 4 MiB = "
             f"{by_thread:,.0f} collections, and {found:,.0f} were counted. By core only the objects fill the space. The paper's numbers follow in the "
             "same way from its messages and sizes, which are ours; that they agree shows that the experiment was rebuilt, not more.")


def _blocking(page: Report, results: Rounds, rooms: int) -> None:
    page.say(f"The source of these runs never blocks, and a refill is over before anybody interferes: failed, invalid and sidelined stay at 0. With a "
             f"source that sleeps for {BLOCK} microseconds, as one that maps memory or waits for a lock, {rooms} rooms:")
    shown = ("LABs", "transactions, succeeded", "transactions, failed", "transactions, invalid", "sidelined", "MiB sidelined",
             "sidelined, never used", "MiB of these")
    rows = []
    for name, value, paper in TABLE_2:
        if name not in shown:
            continue
        cells = []
        for j, by in enumerate(BY[1:]):
            found = [value(v) for v in results[f"blocking/{by}/{rooms}"]]
            cells.append(f"{_number(sum(found) / len(found))} ({_number(paper[3 + 1 + j])})")
        rows.append([name, *cells])
    page.table(["", *(f"{rooms} rooms, {by}, blocking" for by in BY[1:])], rows)


# The end of the space.


def end(options: argparse.Namespace, page: Report) -> None:
    stops = (0, 100) if options.smoke else (0, 10, 20, 50, 100, 200, 500)
    threads, messages = (100, 50) if options.smoke else (1000, 1000)
    results: Rounds = measure(options, "end", "bursty",
                              {f"{by}/{s}": f"young=4M threads={threads} messages={messages} pause_us={PAUSE} stop={s} {_association(by, '64K')}"
                               for s in stops for by in ("thread", "core")}, options.rounds)
    page.head("Threads that sleep: when to cease allocating LABs")
    page.say(f"The study that the paper calls for: no buffers are handed out when less than this part of the space is left, objects only. LABs of "
             f"64 KiB, young space of 4 MiB, {threads} threads; median of the rounds.")
    for by in ("thread", "core"):
        page.table(
            [f"by {by}, permille", "collections", "thousand messages/s", "over never", "direct objects, %"],
            [[s, f"{median(results, f'{by}/{s}', 'collections'):.0f}", f"{median(results, f'{by}/{s}', RATE) / 1e3:.0f}",
              ratio(results, f"{by}/{s}", RATE, f"{by}/0"), f"{100 * median(results, f'{by}/{s}', 'direct') / (30 * messages * threads / 20):.2f}"]
             for s in stops],
        )

    def draw(axes) -> None:  # type: ignore[no-untyped-def]
        for key, axis, scale, label in ((RATE, axes[0], 1e3, "thousand messages per second"), ("collections", axes[1], 1, "collections")):
            for by in ("thread", "core"):
                axis.plot(stops, [median(results, f"{by}/{s}", key) / scale for s in stops], marker="o", label=f"by {by}")
            axis.set(xlabel="no buffers when less than this is left, permille", ylabel=label, ylim=(0, None))
            axis.legend()

    page.panels("lab-mprcs-end", 1, 2, draw)
    best = max(stops, key=lambda s: median(results, f"thread/{s}", RATE))
    few, all_of_them = (median(results, f"thread/{s}", "collections") for s in (best, 0))
    page.finding(best != 0, f"to stop before the end helps threads that hold buffers (paper, of large LABs): best at {best} permille, "
                 f"{few:.0f} collections against {all_of_them:.0f} without.")
