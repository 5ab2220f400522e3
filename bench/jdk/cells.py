# SPDX-License-Identifier: MIT OR Apache-2.0
"""A cell is one JVM with flags and a program. Cells are measured in alternating order; one that fails is left out, with a line on why."""

import argparse
import json
import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import logs
from interleave import Rounds, Subject, Values, interleaved
from jvms import PATCHED, Jvm
from material import Material
from report import Report
from workload import Failed, launched

HAS_STARTED = 0.7  # seconds that a JVM needs before a program's own time begins
LONGEST = 90  # seconds for one run: beyond, it hangs, or threads starve each other
FOREGROUND = "-XX:-BackgroundCompilation"  # else a thousand busy threads leave the compilers no time


@dataclass(frozen=True)
class Program:
    """Our main class and its arguments, or JMH's; JAVA stands for the JVM and its flags, JMH for its class path."""

    words: tuple[str, ...]
    seconds: float  # about

    @property
    def jmh(self) -> bool:
        return self.words[0] == "JMH"


@dataclass(frozen=True)
class Cell:
    name: str
    jvm: str  # STOCK or PATCHED
    flags: tuple[str, ...]
    program: Program

    @property
    def seconds(self) -> float:
        return HAS_STARTED + self.program.seconds


@dataclass(frozen=True)
class Site:
    """Where cells run."""

    options: argparse.Namespace
    jvms: dict[str, Jvm]
    material: Material


@dataclass(frozen=True)
class Experiment:
    name: str
    cells: Callable[[argparse.Namespace], list[Cell]]
    report: Callable[[argparse.Namespace, Report, Rounds], None]
    rounds: Callable[[int], int] = lambda rounds: rounds  # of those that were asked for

    def minutes(self, options: argparse.Namespace) -> float:
        cells = self.cells(options)
        return self.rounds(options.rounds) * sum(c.seconds for c in [*cells, cells[0]]) / 60


def _log(jvm: str, path: Path) -> str:
    levels = "gc,gc+tlab=debug" + (",gc+hab=debug" if jvm == PATCHED else "")
    return f"-Xlog:{levels}:file={path}:uptime,level,tags:filecount=0"


def command(site: Site, cell: Cell, scratch: Path) -> list[str]:
    java = site.jvms[cell.jvm].java
    main = [*cell.flags, _log(cell.jvm, scratch / "main.log")]
    if cell.program.jmh:
        host = [site.jvms["stock"].java, "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", site.material.jmh, "org.openjdk.jmh.Main"]
        return [*host, "-f", "1", "-jvm", java, "-jvmArgs", " ".join(main), "-rf", "json", "-rff", str(scratch / "jmh.json"),
                *cell.program.words[1:]]
    path = ["-cp", str(site.material.classes)]
    server = [java, *cell.flags, _log(cell.jvm, scratch / "server.log"), *path]
    named = {"JAVA": server, "ARCHIVE": [str(site.material.archive)], "LIBRARY": [str(site.material.library)]}
    words = [w for word in cell.program.words for w in named.get(word, [word])]
    return [java, *main, *path, *words]


def jmh_values(records: Sequence[dict[str, Any]]) -> Values:
    """Operations per second; a fork that dies leaves no record."""
    if len(records) != 1:
        raise Failed(f"JMH gave {len(records)} results")
    return {"rate": float(records[0]["primaryMetric"]["score"])}


def _said(output: str) -> Values:
    try:
        values: Values = json.loads(output.strip().splitlines()[-1])
    except (IndexError, ValueError) as error:
        raise Failed("the program said nothing of its result") from error
    return values


def _logged(values: Values, log: Path, prefix: str = "") -> Values:
    text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    window = (values[f"{prefix}from_uptime"], values[f"{prefix}to_uptime"]) if f"{prefix}to_uptime" in values else ()
    return {prefix + key: value for key, value in logs.parse(text, *window).items()}


def run_cell(site: Site, cell: Cell) -> Values:
    """Raises Failed."""
    with tempfile.TemporaryDirectory() as directory:
        scratch = Path(directory)
        run = launched(site.options.build, Subject(cell.name), command(site, cell, scratch), timeout=LONGEST)
        if cell.program.jmh:
            result = scratch / "jmh.json"
            said = jmh_values(json.loads(result.read_text() or "[]") if result.exists() else [])
        else:
            said = _said(run.output)
        if not said.get("rate"):
            raise Failed("it did nothing in its window")
        values = run.values | said | _logged(said, scratch / "main.log")
        if "server.rate" in said:
            values |= _logged(said, scratch / "server.log", "server.")
    return values


def known(site: Site, cells: Sequence[Cell], page: Report) -> list[Cell]:
    """Without those whose JVM does not know a flag."""
    left: dict[str, list[str]] = {}
    kept = []
    for cell in cells:
        unknown = site.jvms[cell.jvm].unknown(cell.flags)
        if unknown:
            left.setdefault(", ".join(unknown), []).append(cell.name)
        else:
            kept.append(cell)
    for flags, names in left.items():
        page.say(f"Left out: this JVM does not know {flags}: {'; '.join(names)}.")
    return kept


def without_failed(results: Rounds) -> Rounds:
    """Without what never gave a result; a round that failed is empty."""
    return {name: rounds for name, rounds in results.items() if any(rounds)}


def measure(site: Site, experiment: Experiment, page: Report) -> Rounds:
    cells = {cell.name: cell for cell in known(site, experiment.cells(site.options), page)}
    failures: list[str] = []

    def measured(subject: Subject) -> Values:
        try:
            return run_cell(site, cells[subject.name])
        except Failed as reason:
            failures.append(f"Error, left out: {subject.name}: {' '.join(str(reason).split())}")
            return {}

    rounds = experiment.rounds(site.options.rounds)
    results = without_failed(interleaved([Subject(name) for name in cells], rounds, measured))
    for line in dict.fromkeys(failures):
        page.say(line)
    return results


def threads() -> int:
    """Twice as many as cores, as in the paper."""
    return 2 * len(os.sched_getaffinity(0))
