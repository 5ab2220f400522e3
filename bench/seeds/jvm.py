# SPDX-License-Identifier: MIT OR Apache-2.0
"""The article's own benchmark: JMH on HotSpot with the parallel collector, with and without TLABs.

Needs java, javac and mvn, and, at the first time, what Maven downloads: JMH.
"""

import argparse
import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from interleave import Rounds, Subject, Values, interleaved
from report import ROOT

PROJECT = Path(__file__).resolve().parent / "jmh"
BUILT = ROOT / "build" / "jmh"
SECONDS = 600  # of a build or a run, at most

# So that collections are few and find nothing, and no page is touched for the first time.
HEAP = "-XX:+UseParallelGC -Xms3g -Xmx3g -Xmn2g -XX:-UseAdaptiveSizePolicy -XX:+AlwaysPreTouch"
KINDS = {"TLAB": "-XX:+UseTLAB", "no TLAB": "-XX:-UseTLAB"}


class NotRun(Exception):
    """Why there is nothing: one line."""


def newest(files: Iterable[Path]) -> float:
    return max((f.stat().st_mtime for f in files), default=0)


def _is_built() -> bool:
    sources = [PROJECT / "pom.xml", *PROJECT.glob("src/**/*.java")]
    classes = list(BUILT.glob("classes/**/Allocation.class"))
    return bool(classes) and any(BUILT.glob("dependency/jmh-core-*.jar")) and newest(classes) > newest(sources)


def last_error(output: str) -> str:
    """What Maven says first of what went wrong."""
    lines = [line.removeprefix("[ERROR]").strip() for line in output.splitlines() if line.startswith("[ERROR]")]
    return next((line for line in lines if line), "no reason given")[:300]


def run(command: Sequence[str]) -> str:
    """What it said."""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors="replace", check=False, timeout=SECONDS)
    except OSError as error:
        raise NotRun(f"there is no {command[0]}") from error
    except subprocess.TimeoutExpired as late:
        raise NotRun(f"{command[0]} took more than {SECONDS} s") from late
    if done.returncode != 0:
        raise NotRun(f"{command[0]} failed: {last_error(done.stdout) if command[0] == 'mvn' else done.stdout.strip()[-300:] or 'no output'}")
    return done.stdout


def build() -> None:
    """Once per checkout, by the user's configuration of Maven."""
    if _is_built():
        return
    missing = [tool for tool in ("mvn", "javac") if shutil.which(tool) is None]
    if missing:
        raise NotRun(f"there is no {' and no '.join(missing)}")
    run(["mvn", "-q", "-B", "-f", str(PROJECT / "pom.xml"), f"-Djmh.build={BUILT}", "process-classes"])


def parse(records: Sequence[dict[str, Any]]) -> Values:
    """By bytes of an object: millions per second; bytes per object as the JVM says; part of the time that went into collections."""
    values: Values = {}
    for record in records:
        size = record["benchmark"].rpartition(".bytes")[2]
        more = record["secondaryMetrics"]
        seconds = record["measurementIterations"] * _seconds(record["measurementTime"])
        values[f"rate/{size}"] = record["primaryMetric"]["score"] / 1e6
        values[f"bytes/{size}"] = more["gc.alloc.rate.norm"]["score"]
        values[f"collecting/{size}"] = more.get("gc.time", {"score": 0})["score"] / 1000 / seconds
    return values


def _seconds(text: str) -> float:
    """As JMH writes it: "500 ms", "1 s"."""
    number, unit = text.split()
    return float(number) * {"ms": 1e-3, "s": 1.0, "min": 60.0}[unit]


def _measure(kind: str, threads: int) -> Values:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "jmh.json"
        command = ["java", "-cp", f"{BUILT}/classes:{BUILT}/dependency/*", "org.openjdk.jmh.Main", "-f", "1", "-wi", "2", "-w", "1s",
                   "-i", "3", "-r", "1s", "-t", str(threads), "-prof", "gc", "-jvmArgsAppend", f"{HEAP} {KINDS[kind]}",
                   "-rf", "json", "-rff", str(path)]
        run(command)
        records = json.loads(path.read_text()) if path.exists() else []
    if len(records) != 3:  # a fork that dies leaves no record
        raise NotRun(f"JMH gave {len(records)} of 3 results with {HEAP} {KINDS[kind]}")
    return parse(records)


def name(kind: str, threads: int) -> str:
    return f"{threads}/{kind}"


def measure(options: argparse.Namespace, counts: Sequence[int]) -> Rounds:
    if options.smoke:
        raise NotRun("no JVM in a smoke test")
    if shutil.which("java") is None:
        raise NotRun("there is no java")
    build()
    runs = {name(kind, t): (kind, t) for t in counts for kind in KINDS}
    return interleaved([Subject(n) for n in runs], min(options.rounds, 3), lambda s: _measure(*runs[s.name]))


def version() -> str:
    """As the JVM says it, the last of three lines."""
    if shutil.which("java") is None:
        return "a JVM"
    done = subprocess.run(["java", "-version"], stderr=subprocess.PIPE, text=True, check=False)
    return (done.stderr.strip().splitlines() or ["a JVM"])[-1]
