# SPDX-License-Identifier: MIT OR Apache-2.0
"""A ring of 250 nodes of one size: does the placement of blocks use all sets of the first-level cache?"""

import json
import os
from pathlib import Path
from typing import Any

from interleave import AGAIN, Rounds, Subject, Values, glibc, interleaved, measured, median, preloaded, ratio, run
from report import Report, arguments, plain_numbers

ARTICLE = (950, 1010, 1080)
SIZES = (*ARTICLE, *range(512, 4096 + 1, 64))
PLACEMENTS = ("punctuated", "odd", "random:0.5", "none")


def measure(subject: Subject, program: Path, sizes: tuple[int, ...], cpus: set[int]) -> Values:
    """Each size in a process of its own, as in the article: what other sizes leave behind is another question."""
    values: Values = {}
    for size in sizes:
        row = json.loads(run(subject, [str(program), str(size)], cpus))
        values |= {f"{name}/{size}": value for name, value in row.items() if name != "size"}
    return values


def _over_by_hand(results: Rounds, name: str, size: int) -> str:
    return str(ratio(results, name, f"ns/{size}", name, f"by_hand_ns/{size}"))


def _plot(report: Report, results: Rounds, names: list[str], sizes: tuple[int, ...]) -> None:
    ordered = sorted(sizes)

    def draw(axes: list[Any]) -> None:
        for name in names:
            axes[0].plot(ordered, [median(results, name, f"ns/{s}") for s in ordered], marker=".", label=name)
        axes[0].plot(ordered, [median(results, names[1], f"by_hand_ns/{s}") for s in ordered], "k--", lw=1,
                     label="by hand, an odd number of lines apart")
        axes[0].set(xlabel="size of a node, bytes", ylabel="time of a step, ns", yscale="log",
                    title="Ring of 250 nodes: step time by size and placement")
        axes[0].set_yticks([1, 2, 3, 4, 5, 6], minor=False)
        axes[0].set_yticks([], minor=True)
        plain_numbers(axes[0].yaxis)
        axes[0].legend()

    report.panels("ring", 1, 1, draw, size=(8, 4.5))


def main(argv: list[str]) -> int:
    options = arguments(__doc__, argv, rounds=9)
    sizes = ARTICLE if options.smoke else SIZES
    ours = [preloaded(f"terrace {p}", options.library, TERRACE_PLACEMENT=p) for p in PLACEMENTS]
    subjects = [glibc(), *ours]
    names = [s.name for s in subjects]
    program = options.build / "bench" / "seeds" / "bench_ring"
    one_cpu = {max(os.sched_getaffinity(0))}
    results = measured(options, "ring", lambda: interleaved(subjects, options.rounds, lambda s: measure(s, program, sizes, one_cpu)))

    report = Report("ring", options.out)
    default = names[1]
    report.say("Step time over that of the same ring laid out by hand an odd number of lines apart, median of the rounds (quartiles).")
    report.table(
        ["bytes", *names, "A/A glibc"],
        [[size, *(_over_by_hand(results, name, size) for name in names), ratio(results, AGAIN, f"ns/{size}", "glibc")]
         for size in ARTICLE],
    )
    worst = {name: max(sizes, key=lambda s: ratio(results, name, f"ns/{s}", name, f"by_hand_ns/{s}").median) for name in names}
    report.say("Over all sizes: the worst, and how the nodes' lines lie in a cache of 64 sets there (a ring of 250 needs 3.9 a set).")
    report.table(
        ["placement", "worst at", "ratio there", "sets used there", "lines in the fullest", "fewest sets used"],
        [[name, f"{s} bytes", _over_by_hand(results, name, s), f"{median(results, name, f'sets/{s}'):.0f}",
          f"{median(results, name, f'fullest/{s}'):.0f}", f"{min(median(results, name, f'sets/{t}') for t in sizes):.0f}"]
         for name, s in worst.items()],
    )
    over = [s for s in sizes if ratio(results, default, f"ns/{s}", default, f"by_hand_ns/{s}").median > 1.15]
    report.say(f"{default}: sizes over 1.15: {', '.join(map(str, over)) or 'none'} of {len(sizes)}.")
    _plot(report, results, names, sizes)
    report.close()
    return 0
