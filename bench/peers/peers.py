# SPDX-License-Identifier: MIT OR Apache-2.0
"""Other allocators: fetches and builds them, and proves that programs run on them; --smoke only proves, for what is there.

Their sources come from crates with exact versions (Cargo.toml), nothing of them is part of this project. What is built lies in
build/peers/NAME/libNAME.so and is built again only when its sources, our recipe or the compiler change; build/peers/NAME.log
says how. How to add one: recipes.py.
"""

import argparse
import fcntl
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import building
from allocators import GLIBC, PEERS, TERRACE, subjects
from interleave import Subject
from probing import Words, ask, complaints, loaded_bytes, object_compiler, readable_version
from recipes import RECIPES, Recipe
from report import ROOT, Report
from terminal import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from workload import Failed

COLUMNS = ("allocator", "version", "mode", "compiler", "loaded KiB", "from")
MODES = {GLIBC: "arenas, caches per thread", "gperftools": "caches per thread", "hoard": "heaps per thread"}


def _options(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="terrace bench peers", description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these; of: " + " ".join(r.name for r in RECIPES))
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "release", help="build directory with library and programs")
    parser.add_argument("--library", type=Path, help="another object than the build directory's libterrace.so")
    parser.add_argument("--peers", type=Path, default=ROOT / "build" / "peers", help="where they are built")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "bench", help="where the table goes")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="compilers at a time for each (default: cpus)")
    parser.add_argument("--force", action="store_true", help="build what is up to date, too")
    parser.add_argument("--smoke", action="store_true", help="fetch and build nothing")
    options = parser.parse_args(argv)
    unknown = set(options.names) - {r.name for r in RECIPES}
    if unknown:
        parser.error(f"no recipe for {', '.join(sorted(unknown))}")
    options.library = (options.library or options.build / "libterrace.so").resolve()
    options.peers = options.peers.resolve()
    options.out.mkdir(parents=True, exist_ok=True)
    return options


def _build(options: argparse.Namespace, recipes: Sequence[Recipe]) -> dict[str, str]:
    """What went wrong, by name. Those whose sources are here are built even if the others' can not be fetched."""
    options.peers.mkdir(parents=True, exist_ok=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with (options.peers / "lock").open("w") as lock, Progress(*columns, transient=True) as progress:
        fcntl.flock(lock, fcntl.LOCK_EX)
        fetching = progress.add_task("fetching the sources", total=None)
        problem = building.fetch(options.peers)
        progress.remove_task(fetching)
        tasks = {recipe.name: progress.add_task(recipe.name, total=None) for recipe in recipes}
        failed = building.build_all(recipes, options.peers, options.jobs, options.force,
                                    lambda name, done, total: progress.update(tasks[name], completed=done, total=total))
    return {name: f"{reason}; {problem}" if problem else reason for name, reason in failed.items()}


def _object(subject: Subject, words: Words) -> Path:
    return Path(subject.environment.get("LD_PRELOAD") or words.functions["malloc"] or "")


def _row(subject: Subject, words: Words, peers: Path) -> list[str]:
    recipe = next((r for r in RECIPES if r.name == subject.name), None)
    built = building.read_built(peers, subject.name) if recipe else None
    path = _object(subject, words)
    content = path.read_bytes()
    version = words.version or (built.version if built else words.libc if subject.name == GLIBC else "?")
    mode = words.mode or (recipe.mode if recipe else MODES.get(subject.name, "-"))
    origin = built.origin if built else "this build" if subject.name == TERRACE else path.name
    return [subject.name, readable_version(version), mode, object_compiler(content), f"{loaded_bytes(content) / 1024:,.0f}", origin]


def _needs(build: Path, subject: Subject, words: Words) -> str:
    """With and without the variables that it needs, as a program found it; nothing if it needs none."""
    preload = {k: v for k, v in subject.environment.items() if k == "LD_PRELOAD"}
    needed = " ".join(f"{k}={v}" for k, v in subject.environment.items() if k != "LD_PRELOAD")
    if not needed:
        return ""
    bare = ask(build, replace(subject, environment=preload))
    return f"{subject.name} with {needed}: {words.mode}; without: {bare.mode}."


def _probe(options: argparse.Namespace, report: Report) -> list[str]:
    """The table; what is wrong, a line each."""
    rows, lines, wrong = [], [], []
    for subject in subjects(options.library, options.peers):
        library = subject.environment.get("LD_PRELOAD")
        try:
            words = ask(options.build, subject)
            bad = complaints(words, Path(library) if library else None)
            wrong += [f"{subject.name} does not serve: {complaint}" for complaint in bad]
            rows.append(_row(subject, words, options.peers))
            lines.append(_needs(options.build, subject, words))
        except Failed as reason:
            wrong.append(f"{subject.name}: {reason}")
    if not wrong:
        report.say("Each of these served all of malloc's family, and the operators of C++ where it has them, in a program of several "
                   "threads; libc's own heap did not grow.")
    report.table(COLUMNS, rows)
    for line in filter(None, lines):
        report.say(line)
    return wrong


def main(argv: list[str]) -> int:
    options = _options(argv)
    chosen = [r for r in RECIPES if not options.names or r.name in options.names]
    failed = {} if options.smoke else _build(options, chosen)
    report = Report("peers", options.out)
    wrong = _probe(options, report)
    for line in (*(f"{name} could not be built: {reason}" for name, reason in failed.items()), *wrong):
        report.say(line)
    absent = [p.name for p in PEERS if p.library(options.peers) is None and p.name not in failed]
    if absent:
        report.say(f"Not here: {', '.join(absent)}.")
    report.close()
    return 1 if failed or wrong else 0
