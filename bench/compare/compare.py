# SPDX-License-Identifier: MIT OR Apache-2.0
"""All workloads under all allocators: time, memory and latency, as one page with plots.

A run that was stopped goes on where it was; --stored makes the page from what is there, --merge one of several machines' results.
"""

import argparse
import datetime
import json
import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import catalogue
import hardware
import machine
import merging
import picture
import probed
from campaign import Plan, measure_all
from findings import findings
from interleave import Subject
from merged import MergeError
from report import ROOT, Table
from store import FORMAT, ChangedError, Header, InUseError, Store
from summary import OURS, Comparison
from tables import all_tables, as_json, failures, losses, overview
from terminal import Console
from webpage import as_markdown, content, document, where_and_when
from workload import Workload

SMOKE = 2  # workloads
INTERRUPTED = 130
UNUSABLE = 2  # what is to be merged


def _words(text: str) -> list[str]:
    return [word for word in text.split(",") if word]


def _options(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="terrace bench compare", description=__doc__)
    parser.add_argument("--only", type=_words, default=[], metavar="NAMES", help="workloads, with commas between; * and ? match")
    parser.add_argument("--groups", type=_words, default=list(catalogue.GROUPS), help="micro,trace,program; default all")
    parser.add_argument(
        "--allocators", type=_words, metavar="NAMES", help="default: all that are here; the first is what others are relative to"
    )
    parser.add_argument(
        "--also", action="append", default=[], metavar='"NAME VARIABLE=VALUE ..."', help="one of them with more in its environment"
    )
    parser.add_argument("--rounds", type=int, default=10, help="default 10")
    parser.add_argument("--latency-rounds", type=int, default=5, help="rounds in which each call is timed; default 5")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "bench", help="where compare.html, .md, .svg, .json and .jsonl go")
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "release", help="build directory with library and programs")
    parser.add_argument("--library", type=Path, help="another object to preload than the build directory's")
    parser.add_argument("--peers", type=Path, default=ROOT / "build" / "peers", help="where `terrace bench peers` built the others")
    parser.add_argument("--fresh", action="store_true", help="begin anew: what was measured before is moved aside")
    parser.add_argument("--retry", action="store_true", help="measure again what failed")
    parser.add_argument("--stored", action="store_true", help="measure nothing, make the page from what is there")
    parser.add_argument(
        "--merge", type=Path, nargs="+", metavar="FILE", help="measure nothing: compare.jsonl or .json of several machines side by side"
    )
    parser.add_argument("--smoke", action="store_true", help="as short as possible: does it work?")
    options = parser.parse_args(argv)
    for group in options.groups:
        if group not in catalogue.GROUPS:
            parser.error(f"there is no group {group}; there are: {' '.join(catalogue.GROUPS)}")
    options.build, options.peers = options.build.resolve(), options.peers.resolve()
    options.library = (options.library or options.build / "libterrace.so").resolve()
    if options.smoke:
        options.rounds, options.latency_rounds, options.fresh = 1, 1, True
        options.allocators = options.allocators or ["glibc", OURS]
    return options


def _subjects(options: argparse.Namespace) -> tuple[list[Subject], dict[str, probed.Said]]:
    """The allocators, and what each says of itself."""
    found = probed.subjects(options.library, options.peers, options.allocators, options.also)
    if len(found) < 2:
        raise SystemExit("there is nothing to compare: neither the library nor a peer is here")
    try:
        return found, {subject.name: probed.ask(options.build, options.peers, subject) for subject in found}
    except probed.IdleError as idle:
        raise SystemExit(f"{idle}\nIts numbers would mean nothing; --allocators with the others leaves it out.") from None


def _commit(options: argparse.Namespace) -> str:
    """That of this checkout; what another library is of, nobody knows."""
    return hardware.commit(ROOT) if options.library == (options.build / "libterrace.so").resolve() else ""


def _header(
    options: argparse.Namespace,
    found: catalogue.Catalogue,
    workloads: Sequence[Workload],
    subjects: Sequence[Subject],
    said: dict[str, probed.Said],
) -> Header:
    where = machine.facts()
    facts = {f"allocator {s.name}": f"{machine.identity(s)} {said[s.name].mode}".strip() for s in subjects}
    facts |= {f"programs of bench/{folder}": found.programs[folder] for folder in sorted({found.folders[w.key] for w in workloads})}
    facts |= {name: where[name] for name in ("processor", "cores", "kernel", "C library", "transparent huge pages")}
    facts["launcher"] = machine.digest([options.build / "bench" / "common" / "bench_launch"])
    facts["amount of work"] = "tiny" if options.smoke else "usual"
    described = {
        s.name: {
            "version": said[s.name].version,
            "mode": said[s.name].mode,
            "settings": " ".join(f"{k}={v}" for k, v in s.environment.items() if k != "LD_PRELOAD"),
            "hash": machine.identity(s).partition(" ")[0] if machine.objects(s) else "",
        }
        for s in subjects
    }
    if OURS in described:
        described[OURS]["commit"] = _commit(options)
    known = {w.key: {"name": w.name, "group": w.group, "threads": w.threads} for w in workloads}
    now = datetime.datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z")
    return Header(facts, described, known, where, now)


def _chosen(options: argparse.Namespace, console: Console) -> tuple[catalogue.Catalogue, list[Workload]]:
    found = catalogue.catalogue(options.build, tiny=options.smoke)
    for line in found.missing:
        console.print(line, markup=False, highlight=False)
    try:
        workloads = catalogue.chosen(found.workloads, options.groups, options.only)
    except ValueError as error:
        raise SystemExit(str(error)) from None
    if not workloads:
        raise SystemExit("there are no workloads")
    return found, workloads[:SMOKE] if options.smoke and not options.only else workloads


def _aside(path: Path) -> None:
    """Hours of measurements are not deleted by an option; the one before them is."""
    if path.exists():
        os.replace(path, path.with_suffix(".before.jsonl"))


def _measure(options: argparse.Namespace, console: Console, path: Path) -> bool:
    """Whether it came to its end."""
    subjects, said = _subjects(options)
    found, workloads = _chosen(options, console)
    header = _header(options, found, workloads, subjects, said)
    if options.fresh:
        _aside(path)
    store = Store(path)
    try:
        store.begin(header)
    except ChangedError as changed:
        raise SystemExit(
            f"{path} has measurements of something else:\n{changed}\n--fresh begins anew (the old file is kept beside it)"
        ) from None
    except InUseError as error:
        raise SystemExit(str(error)) from None
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        measure_all(Plan(workloads, subjects, options.rounds, options.latency_rounds), store, console, options.retry)
    except KeyboardInterrupt:
        console.print("stopped; the same command goes on from here")
        return False
    finally:
        store.close()
    return True


def _raw(data: Comparison, sentences: Sequence[str]) -> str:
    measured = [{**m["key"], "values": m["values"], "failed": m["failed"]} for m in map(asdict, data.measurements)]
    content = {"format": FORMAT, "header": asdict(data.header), "findings": sentences, "tables": as_json(all_tables(data))}
    return json.dumps(content | {"measurements": measured}, indent=1) + "\n"


def write(store: Store, out: Path, console: Console) -> Comparison:
    data = Comparison(store)
    sentences = list(findings(data))
    shown = content(data, sentences)
    (out / "compare.html").write_text(document(shown), encoding="utf-8")
    (out / "compare.md").write_text(as_markdown(shown), encoding="utf-8")
    (out / "compare.json").write_text(_raw(data, sentences), encoding="utf-8")
    picture.draw([("", data)], out / "compare.svg")
    console.print(where_and_when(data), markup=False, highlight=False)
    _tell(console, (overview(data), losses(data), failures(data)), sentences, out / "compare.html")
    return data


def _tell(console: Console, tables: Sequence[Table], sentences: Sequence[str], page_at: Path) -> None:
    for table in tables:
        if table.rows:
            table.print(console)
    for sentence in sentences:
        console.print(f"- {sentence}", markup=False, highlight=False)
    console.print(f"{page_at}", markup=False)


def _merge(options: argparse.Namespace, console: Console) -> int:
    try:
        tables, sentences = merging.report(options.merge, options.out)
    except MergeError as error:
        print(f"terrace bench compare: {error}", file=sys.stderr)
        return UNUSABLE
    _tell(console, tables, sentences, options.out / "merged.html")
    return 0


def needs_programs(argv: Sequence[str]) -> bool:
    """What only reads results wants nothing built."""
    options = _options(argv)
    return not (options.stored or options.merge)


def main(argv: list[str]) -> int:
    options = _options(argv)
    console = Console(width=None if sys.stdout.isatty() else 160)
    options.out.mkdir(parents=True, exist_ok=True)
    if options.merge:
        return _merge(options, console)
    path = options.out / "compare.jsonl"
    finished = options.stored or _measure(options, console, path)
    if options.stored and not path.exists():
        raise SystemExit(f"there is no {path}")
    store = Store(path)
    if not store.results:
        raise SystemExit("nothing was measured")
    data = write(store, options.out, console)
    return INTERRUPTED if not finished else 1 if data.ours_failed() else 0
