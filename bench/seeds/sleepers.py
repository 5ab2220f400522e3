# SPDX-License-Identifier: MIT OR Apache-2.0
"""1 to 10,000 threads that have used a little memory and sleep: what is held beyond live objects and stacks?"""

import json
from pathlib import Path
from typing import Any

import allocators
from interleave import Rounds, Subject, Values, interleaved, measured, median, run, spread
from report import ROOT, Report, arguments, plain_numbers

THREADS = (1, 10, 100, 1000, 2000, 5000, 10000)
MIB = 2**20


def _measure(subject: Subject, program: Path, counts: tuple[int, ...]) -> Values:
    values: Values = {}
    for n in counts:
        row = json.loads(run(subject, [str(program), f"threads={n}"]))
        values |= {f"grown/{n}": row["grown_bytes"], f"live/{n}": row["live_bytes"]}
    return values


def _beyond(results: Rounds, name: str, count: int) -> list[float]:
    """MiB beyond live objects. What is live is the same under every allocator, and Terrace's mallinfo2 says it exactly."""
    live = median(results, "terrace", f"live/{count}")
    return [(v[f"grown/{count}"] - live) / MIB for v in results[name]]


def _plot(report: Report, results: Rounds, names: list[str], counts: tuple[int, ...]) -> None:
    def draw(axes: list[Any]) -> None:
        for name in names:
            axes[0].plot(counts, [spread(_beyond(results, name, n)).median for n in counts], marker="o", label=name)
        axes[0].axhline(2, color="k", ls="--", lw=1, label="2 MiB")
        axes[0].set(xscale="log", yscale="log", xlabel="sleeping threads", ylabel="MiB beyond live objects and stacks",
                    title="Memory held for threads that have used 50 objects and sleep")
        plain_numbers(axes[0].xaxis, axes[0].yaxis)
        axes[0].legend()

    report.panels("sleepers", 1, 1, draw, size=(8, 4.5))


def main(argv: list[str]) -> int:
    options = arguments(__doc__, argv, rounds=5)
    counts = (1, 50) if options.smoke else THREADS
    # 10,000 threads keep rpmalloc busy for ten minutes and more: most of them spin.
    subjects = [s for s in allocators.subjects(options.library, ROOT / "build" / "peers") if s.name != "rpmalloc"]
    program = options.build / "bench" / "seeds" / "bench_sleepers"
    results = measured(options, "sleepers", lambda: interleaved(subjects, options.rounds, lambda s: _measure(s, program, counts)))

    report = Report("sleepers", options.out)
    report.say("Resident MiB beyond live objects and stacks after the threads have gone to sleep, median of the rounds (quartiles).")
    rows = [
        [n, *(spread(_beyond(results, s.name, n)) for s in subjects), f"{median(results, 'terrace', f'live/{n}') / 1024:.0f}"]
        for n in counts
    ]
    report.table(["threads", *(s.name for s in subjects), "live, KiB"], rows)
    few, many = (1000, 10000) if not options.smoke else (counts[0], counts[-1])
    growth = spread(_beyond(results, "terrace", many)).median / spread(_beyond(results, "terrace", few)).median
    report.say(f"terrace: {many} threads hold {growth:.2f} of what {few} hold.")
    _plot(report, results, [s.name for s in subjects], counts)
    report.close()
    return 0
