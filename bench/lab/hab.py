# SPDX-License-Identifier: MIT OR Apache-2.0
"""[HAB] section V: Figures 2 and 3, Tables I and II; and what the authors left to future work: four levels, and other ways of
synchronisation."""

import argparse
import os
from dataclasses import dataclass, replace
from statistics import geometric_mean

from experiment import measure
from interleave import AGAIN, Rounds, Spread, median, ratio
from papers import CLABS, PLABS, TABLE_1, TABLE_2
from report import Report, plain_numbers, speedups

WORK = 20  # steps of computing per object
UNUSED = "unused_at_a_collection"
TLABS = ("growing", "128K", "64K", "32K", "16K", "8K", "4K", "1K", "none")  # as they are measured; in tables the other way round
FOUR = {"clab": "1M", "plab": "16M"}
RATE = "objects_per_second"
ONLY = ", only allocating"

@dataclass(frozen=True)
class Family:
    """One panel of a figure: a kind of buffer between TLABs and the space, in several sizes."""

    name: str
    sizes: tuple[str, ...]
    configuration: str  # with {}

    def subject(self, tlab: str, size: str) -> str:
        return f"TLAB {tlab}, {self.name} {size}"


def _base(tlab: str) -> str:
    return f"TLAB {tlab}"


def _foreign(results: Rounds, name: str, level: str, kinds: tuple[str, ...] = ("foreign", "neighbours")) -> float:
    """Percent of the requests at that level, over all rounds. Foreign is what a thread took that was moved to another core on the way;
    neighbours' buffers serve it while its own is being refilled or can not be. The paper counts both."""
    rounds = results[name]
    return 100 * sum(v[f"{level}.{kind}"] for v in rounds for kind in kinds) / max(1, sum(v["requests"] for v in rounds))


def _mean(results: Rounds, family: Family, tlabs: tuple[str, ...]) -> float:
    """Speed-up over TLABs of the same size, mean over sizes."""
    return geometric_mean(ratio(results, family.subject(t, s), RATE, _base(t)).median for t in tlabs for s in family.sizes)


def _lines(axes, results: Rounds, family: Family, tlabs: tuple[str, ...], growing: bool) -> None:  # type: ignore[no-untyped-def]
    lines = {size: [ratio(results, family.subject(t, size), RATE, "TLAB growing" if growing else _base(t)) for t in tlabs] for size in family.sizes}
    speedups(axes, f"TLAB and {family.name}", tlabs, lines, "growing TLABs" if growing else "TLABs only")
    if growing:
        axes.plot([ratio(results, _base(t), RATE, "TLAB growing").median for t in tlabs], "k--", lw=1, label="no level between")
    else:
        axes.axhline(1, color="k", lw=1, ls="--")
    if axes.get_ylim()[1] > 4:
        axes.set_yscale("log")
        plain_numbers(axes.yaxis, steps=(1, 2, 5))
    axes.legend(fontsize=8)


def _speedup_table(page: Report, m: "Measured", growing: bool) -> None:
    columns = [(f, s) for f in m.three for s in f.sizes]
    rows = []
    for t in m.tlabs:
        base = _base("growing") if growing else _base(t)
        own = str(ratio(m.results, _base(t), RATE, base)) if growing else f"{median(m.results, _base(t), RATE) / 1e6:.1f}"
        rows.append([t, own, *(f"{ratio(m.results, f.subject(t, s), RATE, base).median:.2f}" for f, s in columns)])
    page.table(["TLAB", "TLAB only" if growing else "TLAB only, M objects/s", *(f"{f.name} {s}" for f, s in columns)], rows)


def _foreign_table(page: Report, results: Rounds, family: Family, level: str, tlabs: tuple[str, ...], paper: dict, all_sizes) -> None:  # type: ignore[no-untyped-def,type-arg]
    def cell(t: str, s: str) -> str:
        theirs = paper[t][all_sizes.index(s)] if t in paper else None
        name = family.subject(t, s)
        moved, neighbours = (_foreign(results, name, level, (kind,)) for kind in ("foreign", "neighbours"))
        return f"{moved:.2g} + {neighbours:.2g} ({'-' if theirs is None else f'{theirs:.2f}'})"

    page.table(["TLAB", *(f"{family.name} {s}" for s in family.sizes)], [[t, *(cell(t, s) for s in family.sizes)] for t in tlabs])


@dataclass(frozen=True)
class Measured:
    results: Rounds
    tlabs: tuple[str, ...]  # from none to growing
    plab: Family
    cas: Family
    cs: Family
    four: tuple[Family, ...]

    @property
    def plabs(self) -> float:
        """How many there are: one per last-level cache."""
        return self.results[self.plab.subject(self.tlabs[0], self.plab.sizes[0])][0]["processor.buffers"]

    @property
    def three(self) -> list[Family]:
        return [self.plab, self.cas, self.cs]


def _families(smoke: bool) -> Measured:
    """What is to be measured."""
    order = ("growing", "16K", "none") if smoke else TLABS
    plab = Family("PLAB", (FOUR["plab"],) if smoke else PLABS, "plab={} sync=cas")
    cas = Family("CLAB cas", (FOUR["clab"],) if smoke else CLABS, "clab={} sync=cas")
    cs = Family("CLAB cs", cas.sizes, "clab={} sync=cs")
    sizes = f"{FOUR['clab']}+{FOUR['plab']}"
    four = (Family(f"four levels {sync}", (sizes,), f"clab={FOUR['clab']} plab={FOUR['plab']} sync={sync}") for sync in ("cas", "cs"))
    return Measured({}, order[::-1], plab, cas, cs, tuple(four))


def _configurations(m: Measured, common: str) -> dict[str, str]:
    configurations: dict[str, str] = {}
    for t in m.tlabs[::-1]:  # what is compared runs close together
        configurations[_base(t)] = f"{common} tlab={t}"
        for f in (*m.three, *m.four):
            for s in f.sizes:
                configurations[f.subject(t, s)] = f"{common} tlab={t} {f.configuration.format(s)}"
    computing = {name: f"{line} work={WORK}" for name, line in configurations.items()}
    chosen = (_base("growing"), *(f.subject("16K", FOUR["clab"]) for f in (m.cas, m.cs)))
    return computing | {f"{name}{ONLY}": configurations[name] for name in chosen}


def _measure(options: argparse.Namespace, m: Measured, common: str) -> Measured:
    results = measure(options, "hab", "busy", _configurations(m, common), options.rounds)
    for rounds in results.values():
        for v in rounds:
            v[UNUSED] = sum(v[f"{level}.retired_bytes"] for level in ("thread", "core", "processor")) / max(1.0, v["collections"])
    return replace(m, results=results)


def _setting(page: Report, m: Measured, threads: int, young: str) -> None:
    page.head("Hierarchical allocation buffers")
    page.say(f"{threads} threads that allocate and initialise objects as javac's (16 to 128 bytes, one in fifty an array of up to 2 KiB) "
             f"and compute for {WORK} steps of a nanosecond or less after each, still much less than javac does, "
             f"from a young space of {young[:-1]} MiB; a collection takes 0.5 ms and finds everything dead. Speed-up is in "
             "objects per second, median of the rounds; the paper ran SPECjvm2008 javac with 80 threads on 40 cores. cas: by "
             "compare-and-swap, as in the paper; cs: by critical sections. A/A: "
             f"{ratio(m.results, AGAIN, RATE, _base('growing'))}, growing TLABs.")
    if m.plabs == 1:
        page.say("All cores here share one last-level cache, so there is one PLAB, shared by all: its figures say what that costs, and nothing of "
                 "what a buffer per cache would gain.")


def _figure_2(page: Report, m: Measured) -> None:
    page.say("Figure 2: over TLABs of the same size and nothing between them and the space.")
    _speedup_table(page, m, growing=False)
    page.panels("lab-hab-figure2", 1, 3, lambda axes: [_lines(a, m.results, f, m.tlabs, False) for a, f in zip(axes, m.three, strict=True)])
    first, last = m.tlabs[1], m.tlabs[-2]
    small, large = (geometric_mean(_mean(m.results, f, (t,)) for f in m.three) for t in (first, last))
    page.finding(small >= large, f"smaller TLABs gain more (paper): speed-up {small:.2f} with {first}, {large:.2f} with {last}.")
    p, c, s = (_mean(m.results, f, m.tlabs) for f in m.three)
    page.finding(c >= p, f"CLABs are on average slightly better than PLABs (paper): {c:.3f} by compare-and-swap and {s:.3f} by critical "
                 f"sections against {p:.3f}.")
    grown = max(_mean(m.results, f, ("growing",)) for f in m.three)
    page.finding(grown >= 1.02, f"growing TLABs gain, too (paper): at best {grown:.2f}.",
                 "they are refilled some fifty times between two collections, so there is nothing to gain, and the buffer above is one step "
                 "more")


def _figure_3(page: Report, m: Measured) -> None:
    page.say("Figure 3: the same over growing TLABs.")
    _speedup_table(page, m, growing=True)
    page.panels("lab-hab-figure3", 1, 3, lambda axes: [_lines(a, m.results, f, m.tlabs, True) for a, f in zip(axes, m.three, strict=True)])
    for f in (m.cas, m.cs):
        over_growing = (ratio(m.results, f.subject("16K", size), RATE, _base("growing")) for size in f.sizes)
        best: Spread = max(over_growing, key=lambda x: x.median)
        page.finding(best.median >= 0.95, f"small TLABs of one size on {f.name} do as well as growing ones (paper): 16K at best {best}.",
                     "these threads do little but allocate, and refill a buffer of 16K every few microseconds")
    for f in (m.cas, m.cs):
        _check_small_ones(page, m.results, f)


def _check_small_ones(page: Report, results: Rounds, f: Family) -> None:
    name = f.subject("16K", FOUR["clab"])
    for only in ("", ONLY):
        rate = ratio(results, f"{name}{only}", RATE, f"{_base('growing')}{only}")
        page.check(f"16K TLABs on {f.name} {FOUR['clab']} over growing TLABs{only}", str(rate), ">= 0.95", rate.median >= 0.95)
    unused = ratio(results, name, UNUSED, _base("growing"))
    grown = median(results, _base("growing"), UNUSED) / 1024
    page.check(f"the same: bytes unused at a collection, over growing TLABs ({grown:.0f} KiB)", str(unused), "<= 1", unused.median <= 1)


def _tables(page: Report, m: Measured) -> None:
    tables = [(m.cas, "core", "II", TABLE_2, CLABS)]
    if m.plabs == 1:
        page.say("Table I, foreign allocations of PLABs, is left out: with one PLAB for all no request can be foreign.")
    else:
        tables.insert(0, (m.plab, "processor", "I", TABLE_1, PLABS))
    for f, level, number, paper, all_sizes in tables:
        page.say(f"Table {number}: foreign allocations in percent of the requests at that level: of threads that were moved on the way + "
                 "from neighbours, since the own buffer was being refilled or, near the end of the space, could not be (the paper's, which has "
                 "one number for both).")
        _foreign_table(page, m.results, f, level, m.tlabs, paper, all_sizes)
    names = [m.cas.subject(t, size) for t in m.tlabs for size in m.cas.sizes]
    both = max(_foreign(m.results, n, "core") for n in names)
    page.finding(both <= 2.81, f"foreign allocations are rare (paper: 0.00 to 2.81 % on CLABs): at most {both:.2f} %, none by critical sections.",
                 "where a few requests empty a buffer, what is left in neighbours' buffers at the end of the space is a large part of all; the "
                 "paper's space was twenty times as large")
    ends = (m.cas.sizes[0], m.cas.sizes[-1])
    low, high = (sum(_foreign(m.results, m.cas.subject(t, size), "core") for t in m.tlabs) / len(m.tlabs) for size in ends)
    page.finding(high > low, f"foreign allocations become more with larger CLABs (paper: on average 0.02 to 0.60 %): {low:.3f} % with "
                 f"{ends[0]}, {high:.3f} % with {ends[1]}.")
    above = sum(_foreign(m.results, n, "core") >= 0.5 for n in names)
    page.check("foreign allocations as the paper counts them, cells of Table II at 0.5 % or more", f"{above} of {len(names)}", "0", above == 0)
    usual = _foreign(m.results, m.cas.subject("16K", FOUR["clab"]), "core")
    page.check(f"the same, 16K TLABs on CLABs of {FOUR['clab']}", f"{usual:.2g} %", "< 0.5 %", usual < 0.5)


def _four(page: Report, m: Measured) -> None:
    three = [(m.plab, FOUR["plab"]), (m.cas, FOUR["clab"]), (m.cs, FOUR["clab"])]
    columns = [*three, *((f, f.sizes[0]) for f in m.four)]
    page.say(f"Four levels (TLAB, CLAB of {FOUR['clab']}, PLAB of {FOUR['plab']}, space) against three: speed-up over TLABs of the same "
             "size.")
    page.table(["TLAB", *(f"{f.name} {s}" for f, s in columns)],
               [[t, *(ratio(m.results, f.subject(t, s), RATE, _base(t)) for f, s in columns)] for t in m.tlabs])

    def draw(axes) -> None:  # type: ignore[no-untyped-def]
        for f, s in columns:
            axes[0].plot([ratio(m.results, f.subject(t, s), RATE, _base(t)).median for t in m.tlabs], marker=".", label=f"{f.name} {s}")
        axes[0].set_xticks(range(len(m.tlabs)), m.tlabs, rotation=45)
        axes[0].set(title="Four levels and three", xlabel="TLAB", ylabel="speed-up over TLABs only", yscale="log")
        plain_numbers(axes[0].yaxis, steps=(1, 2, 5))
        axes[0].legend(fontsize=8)

    page.panels("lab-hab-levels", 1, 1, draw)
    with_clabs = (ratio(m.results, m.four[0].subject(t, m.four[0].sizes[0]), RATE, m.cas.subject(t, FOUR["clab"])).median for t in m.tlabs)
    page.say(f"Four levels over three with CLABs by compare-and-swap: {geometric_mean(with_clabs):.3f}. The paper does not say; it expects "
             "that other configurations may be beneficial.")


def run(options: argparse.Namespace, page: Report) -> None:
    threads = 2 * (os.cpu_count() or 1)
    young = "128M" if options.smoke else "512M"
    common = f"threads={threads} young={young} ms={10 if options.smoke else 200} pause_us=500"
    m = _measure(options, _families(options.smoke), common)
    _setting(page, m, threads, young)
    _figure_2(page, m)
    _figure_3(page, m)
    _tables(page, m)
    _four(page, m)
