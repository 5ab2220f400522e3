# SPDX-License-Identifier: MIT OR Apache-2.0
"""What an allocator adds to the start of a program: an empty one, and small ones."""

import argparse
import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from interleave import Rounds, Subject, Values, interleaved, measured, median, names, preloaded, spread
from interleave import run as run_program
from report import Report

ARTICLE_US = 50  # "roughly 50 microsecond increase in the wall and cpu time" of umem_init
NOTHING = "an empty object"  # preloaded: the linker's work for any object
PROGRAMS: dict[str, tuple[int, list[str]]] = {  # how often per round
    "true": (40, ["true"]),
    "sh": (40, ["sh", "-c", ":"]),
    "perl": (30, ["perl", "-e", "1"]),
    "sqlite3": (30, ["sqlite3", ":memory:", "select 1"]),
    # Not the first python3 of the path, which may be a script that looks for one.
    "python3": (10, [str(Path(sys.executable).resolve()), "-S", "-c", "pass"]),
}


def programs(empty: Path, smoke: bool) -> dict[str, tuple[int, list[str]]]:
    """Those that are here, the empty one first."""
    found = {name: p for name, p in PROGRAMS.items() if shutil.which(p[1][0])} if not smoke else {}
    return {"empty": (2 if smoke else 50, [str(empty)]), **found}


def _measure(starter: Path, chosen: dict[str, tuple[int, list[str]]], subject: Subject) -> Values:
    settings = [f"{k}={v}" for k, v in subject.environment.items()]
    values: Values = {}
    for name, (times, command) in chosen.items():
        row = json.loads(run_program(Subject(subject.name), [str(starter), str(times), *settings, *command]))
        values |= {f"{key}/{name}": value for key, value in row.items()}
    return values


def added(results: Rounds, name: str, key: str, base: str = NOTHING) -> list[float]:
    """Within each round."""
    return [a[key] - b[key] for a, b in zip(results[name], results[base], strict=True)]


def _cell(results: Rounds, name: str, key: str) -> str:
    if name in ("glibc", NOTHING):
        return f"{median(results, name, key):,.0f}"
    return f"{spread(added(results, name, key)).median:+,.0f}"


def run(options: argparse.Namespace, page: Report, present: Sequence[Subject]) -> None:
    folder = options.build / "bench" / "seeds"
    chosen = programs(folder / "bench_empty_program", options.smoke)
    subjects = [present[0], preloaded(NOTHING, folder / "libbench_empty_object.so"), *present[1:]]
    results = measured(options, "seeds-startup", lambda: interleaved(
        subjects, options.rounds, lambda s: _measure(folder / "bench_startup", chosen, s)))
    shown = [key.partition("/")[2] for key in results["glibc"][0] if key.startswith("cpu_us/")]
    page.say("Start and end of a program, microseconds of cpu time, medians; for the empty program also as seen from outside, "
             f"and page faults. glibc and {NOTHING}, preloaded, as they are; the others: what they add to {NOTHING}.")
    columns = [("wall_us/empty", "empty, seen"), ("faults/empty", "empty, faults"), *((f"cpu_us/{n}", n) for n in shown)]
    page.table(["start-up", *(title for _, title in columns)],
               [[name, *(_cell(results, name, key) for key, _ in columns)] for name in names(results)])

    def draw(axes) -> None:  # type: ignore[no-untyped-def]
        listed = [n for n in names(results) if n not in ("glibc", NOTHING)][::-1]
        spreads = [spread(added(results, n, "cpu_us/empty")) for n in listed]
        middles = [s.median for s in spreads]
        axes[0].barh(listed, middles, xerr=[[s.median - s.low for s in spreads], [s.high - s.median for s in spreads]],
                     color=["#b5442e" if n == "terrace" else "#6b8cae" for n in listed])
        axes[0].axvline(ARTICLE_US, color="k", ls="--", lw=1, label="article: what umem_init grew by")
        axes[0].set(title="What preloading adds to an empty program", xlabel="cpu time, microseconds")
        axes[0].legend(fontsize=8)

    page.panels("seeds-startup", 1, 1, draw)
    if "terrace" in names(results):
        wall, cpu = (spread(added(results, "terrace", f"{key}/empty")) for key in ("wall_us", "cpu_us"))
        page.finding(cpu.median <= 2 * ARTICLE_US, f"the start of a process bears it (article: umem_init took some {ARTICLE_US} "
                     f"microseconds more, wall and cpu): terrace adds {cpu.median:.0f} microseconds of cpu time ({cpu.low:.0f} to "
                     f"{cpu.high:.0f}) to an empty program beyond what any object takes, {wall.median:.0f} ({wall.low:.0f} to "
                     f"{wall.high:.0f}) as seen from outside.",
                     "everything is set up by the first allocation")
