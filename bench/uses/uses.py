# SPDX-License-Identifier: MIT OR Apache-2.0
"""Servers as people run them, loaded and then left alone, under allocators as distributions have them: memory over time.

The loads run one after the other; the servers that have been loaded idle beside the next one's load.
"""

import argparse
import json
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

from report import ROOT, Report  # first, as it says what is not here

import databases
import web
import workers
from allocators import TERRACE, distributed
from interleave import Subject, glibc, preloaded
from recipe import find
from server import Server
from use import Use
from watched import PERIOD_SECONDS, Watch, summary
from workload import Failed

PURPOSES = ("bench", "uses")
USES = {use.name: use for use in (*web.USES, *databases.USES, *workers.USES)}
MIB = 2**20
Run = dict[str, Any]
Runs = dict[str, dict[str, list[Run]]]  # by use and allocator


def allocators(options: argparse.Namespace, use: Use) -> list[Subject]:
    arenas, ours = Subject("glibc, 2 arenas", {"MALLOC_ARENA_MAX": "2"}), preloaded(TERRACE, options.library)
    found = [glibc(), arenas, *distributed(), ours]
    found += [Subject(f"{one.name}, {name}", one.environment | more) for name, more in use.settings.items() for one in (glibc(), ours)]
    chosen = [subject for subject in found if subject.name in (options.allocator or [subject.name])]
    if not chosen:
        raise Failed(f"allocators here: {'; '.join(subject.name for subject in found)}")
    return chosen


class Session:
    """One run of a use under an allocator: the load returns; the drain goes on until `drained`."""

    def __init__(self, options: argparse.Namespace, use: Use, subject: Subject) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="uses-"))
        try:
            use.prepare(self._folder)
            self._server = Server(options.build, use.subject(subject), use.service(self._folder))
        except BaseException:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise
        try:
            self._server.wait_until_it_answers()
            self._watch = Watch(self._server)
            self._done = use.load(self._folder, options.share)
            self._loaded_at = self._watch.now()
        except BaseException:
            self.close()
            raise

    def drained(self, seconds: float) -> Run:
        try:
            time.sleep(seconds)
            samples = self._watch.end()
            values = self._server.stop()
        finally:
            self.close()
        return {
            **summary(samples, self._loaded_at), **asdict(self._done), "cpu": values["cpu_seconds"], "loaded_at": self._loaded_at,
            "series": [(at, round(size / MIB, 1)) for at, size in samples],
        }

    def close(self) -> None:
        self._server.kill()
        shutil.rmtree(self._folder, ignore_errors=True)


def measure(options: argparse.Namespace, use: Use, subjects: Sequence[Subject], say: Any) -> dict[str, list[Run]]:
    """Each round begins with another allocator."""
    runs: dict[str, list[Run]] = {subject.name: [] for subject in subjects}
    with ThreadPoolExecutor(max_workers=len(subjects) * options.rounds) as draining:
        for number in range(options.rounds):
            turn = number % len(subjects)
            for subject in (*subjects[turn:], *subjects[:turn]):
                session = Session(options, use, subject)
                runs[subject.name].append({"draining": draining.submit(session.drained, options.drain)})
                say(f"{use.name}, {subject.name}: loaded")
    return {name: [one["draining"].result() for one in found] for name, found in runs.items()}


def middle(found: Sequence[Run], key: str) -> float:
    return float(statistics.median(run[key] for run in found))


def rate(found: Sequence[Run]) -> float:
    """Requests per second of processor time."""
    return float(statistics.median(run["requests"] / run["cpu"] for run in found))


COLUMNS = ("allocator", "peak, MiB", "after the load", "after the drain", "over the least", "requests per cpu second", "over the best",
           "p99, ms")


def rows(runs: dict[str, list[Run]]) -> list[list[object]]:
    least = min(middle(found, "drained") for found in runs.values())
    best = max(rate(found) for found in runs.values())
    return [
        [name, *(f"{middle(found, key) / MIB:,.0f}" for key in ("peak", "loaded", "drained")), f"{middle(found, 'drained') / least:.2f}",
         f"{rate(found):,.1f}", f"{rate(found) / best:.2f}", f"{middle(found, 'p99'):,.1f}"]
        for name, found in runs.items()
    ]


def overview(runs: dict[str, list[Run]]) -> list[str]:
    """After the drain, and how much work a second of processor time does. Terrace with a setting is no other allocator."""
    runs = {name: found for name, found in runs.items() if not name.startswith(f"{TERRACE}, ")}
    drained = {name: middle(found, "drained") / MIB for name, found in runs.items()}
    others = {name: size for name, size in drained.items() if name not in (TERRACE, "glibc")}
    least, best = min(others, key=others.__getitem__), max(rate(found) for found in runs.values())
    ours = drained[TERRACE]
    return [f"{ours:,.0f}", f"{drained['glibc']:,.0f}", f"{others[least]:,.0f} {least}", f"{ours / min(drained.values()):.2f}",
            f"{rate(runs[TERRACE]) / best:.2f}", f"{rate(runs[TERRACE]) / rate(runs['glibc']):.2f}"]


OVERVIEW = ("server", "Terrace, MiB", "glibc", "least other", "over the least", "work over the best", "over glibc's")


STYLES = {
    "glibc": ("black", ":"), "glibc, 2 arenas": ("gray", ":"), "jemalloc": ("tab:blue", "--"), "mimalloc": ("tab:purple", "--"),
    "tcmalloc": ("tab:green", "--"), TERRACE: ("tab:orange", "-"),
}


def draw(axes: list[Any], all_runs: Runs) -> None:
    """Memory over time; the first round of each allocator, from the moment at which its server answered."""
    explained: set[str] = set()
    for axis, (name, runs) in zip(axes, all_runs.items(), strict=False):
        for allocator, found in runs.items():
            color, dash = STYLES.get(allocator, ("tab:red", STYLES[allocator.partition(",")[0]][1]))
            x, y = zip(*found[0]["series"], strict=True)
            axis.plot(x, y, dash, color=color, label=allocator, lw=2 if allocator == TERRACE else 1)
        axis.set(title=USES[name].title, xlabel="seconds", ylabel="MiB")
        axis.set_ylim(bottom=0)
        if not runs.keys() <= explained:
            axis.legend(fontsize="small")
            explained |= runs.keys()
    for axis in axes[len(all_runs):]:
        axis.set_visible(False)


def show(all_runs: Runs, out: Path) -> None:
    report = Report("uses", out, "What servers hold, loaded and left alone")
    columns = min(3, len(all_runs))
    height = -(-len(all_runs) // columns)
    report.say("Anonymous memory when the server has been left alone; work per second of processor time; p99 in wall time.")
    whole = {name: runs for name, runs in all_runs.items() if {TERRACE, "glibc"} < runs.keys()}
    report.table(OVERVIEW, [[USES[name].title, *overview(runs)] for name, runs in whole.items()])
    report.panels("uses", height, columns, lambda axes: draw(axes, all_runs), size=(4.6, 3.2))
    for name, runs in all_runs.items():
        report.head(USES[name].title)
        report.table(COLUMNS, rows(runs))
    report.close()


def arguments(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="terrace bench uses", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(USES)}; default: all")
    parser.add_argument("--allocator", action="append", help="again: one more; default: all that are here. Others keep what uses.json has")
    parser.add_argument("--rounds", type=int, default=3, help="default 3")
    parser.add_argument("--drain", type=float, default=60, metavar="SECONDS", help="how long a server is left alone; default 60")
    parser.add_argument("--share", type=float, default=1, help="of the load; default 1")
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "release", help="build directory with library and programs")
    parser.add_argument("--library", type=Path, help="another object to preload than the build directory's")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "bench", help="where uses.md, .html, .svg and .json go")
    parser.add_argument("--stored", action="store_true", help="show what uses.json has")
    parser.add_argument("--smoke", action="store_true", help="as short as possible: does it work?")
    options = parser.parse_args(argv)
    if options.smoke:
        options.names, options.rounds, options.share, options.drain = options.names or ["redis"], 1, 0.01, PERIOD_SECONDS * 3
    if unknown := [name for name in options.names if name not in USES]:
        parser.error(f"there is no {' '.join(unknown)}; there are: {' '.join(USES)}")
    options.build = options.build.resolve()  # servers run in folders of their own
    options.library = (options.library or options.build / "libterrace.so").resolve()
    options.out.mkdir(parents=True, exist_ok=True)
    return options


def main(argv: list[str]) -> int:
    options = arguments(argv)
    kept = options.out / "uses.json"
    all_runs: Runs = json.loads(kept.read_text()) if kept.exists() else {}
    failures = 0
    for use in [] if options.stored else [USES[name] for name in options.names or USES]:
        try:
            if lacking := [name for name in use.needs if find(name) is None]:
                raise Failed(f"not here: {', '.join(lacking)}")
            before = all_runs.get(use.name, {}) if options.allocator else {}
            all_runs[use.name] = before | measure(options, use, allocators(options, use), lambda text: print(text, flush=True))
            kept.write_text(json.dumps(all_runs) + "\n")
        except Failed as failed:
            print(f"uses, {use.name}: {failed}", file=sys.stderr, flush=True)
            failures += 1
    wanted = {name: all_runs[name] for name in USES if name in all_runs and (not options.names or name in options.names)}
    if wanted:
        show(wanted, options.out)
    return 1 if failures else 0
