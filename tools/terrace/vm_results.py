# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the guests reported: read from their consoles, kept as JSON, and written as a page."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from terrace.vm_rows import Row

MARK = "@terrace-vm "

_INTRODUCTION = """# Kernels and machines

`./terrace test vm` boots Debian kernels in an emulated machine and runs the tests of the project in
it: sequences with delays and their mutants, the oracle stress (also while CPUs are unplugged), unit
tests, surroundings, the API and misuse on each rung, and traffic between processors, checked from
the statistics. The command writes this page. A kernel that has no row here with a result was not
tried.

Emulation shows how programs and kernel get on with each other, not the hardware's memory order or
speed. Each row says how many tests passed, failed and were skipped, on which rungs the oracle
stress ran to its end, how many operations of the stress the oracle watched, and from which commit
the programs were built. *N not run*: the time that the guest was given was over.

| kernel | libc | ISA | machine | passed | failed | skipped | outcome | rungs | watched | commit |
|---|---|---|---|--:|--:|--:|---|---|--:|---|
"""


@dataclass
class Outcome:
    """One guest."""

    row: str
    kernel: str = ""
    libc: str = ""
    isa: str = ""
    machine: str = ""
    commit: str = ""
    booted: bool = False
    ended: bool = False
    planned: int = 0
    results: dict[str, str] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)
    running: str = ""
    complaints: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def count(self, result: str) -> int:
        return sum(r == result for r in self.results.values())

    @property
    def operations(self) -> int:
        """What the oracle watched: how much a pass of the stress is worth on a slow machine."""
        found = (
            re.search(r"^stress: .*: (\d+) operations", text, re.MULTILINE)
            for name, text in self.outputs.items()
            if "stress." in name
        )
        return sum(int(match[1]) for match in found if match)

    @property
    def verdict(self) -> str:
        """One phrase; only "passed" alone is a pass: a guest that had no time for all is none."""
        if not self.booted:
            return "did not boot"
        if not self.ended:
            return f"stopped in {self.running or 'no test'}"
        missing = self.planned - len(self.results)
        verdict = "failed" if self.count("failed") else "passed"
        return f"{verdict}; {missing} not run" if missing else verdict


def read_line(line: str) -> dict[str, Any] | None:
    """The report in a line of the console; None if there is none, or the kernel wrote into it."""
    _, mark, text = line.partition(MARK)
    if not mark:
        return None
    try:
        report = json.loads(text)
    except ValueError:
        return None
    return report if isinstance(report, dict) else None


def add_report(outcome: Outcome, report: dict[str, Any]) -> None:
    """What one line tells."""
    kind = report.get("kind")
    if kind == "machine":
        outcome.booted = True
        outcome.kernel, outcome.libc = report["kernel"], report["libc"]
        outcome.isa = report["isa"]
    elif kind == "start":
        outcome.running = report["test"]
    elif kind == "result":
        name = report["test"]
        outcome.results[name] = report["result"]
        if report["result"] != "passed":
            outcome.reasons[name] = report["reason"]
        if report["output"]:
            outcome.outputs[name] = report["output"]
    elif kind == "kernel":
        outcome.complaints = report["lines"]
    elif kind == "end":
        outcome.ended = True


def read_console(outcome: Outcome, text: str) -> None:
    for line in text.splitlines():
        report = read_line(line)
        if report is not None:
            add_report(outcome, report)


def save(outcome: Outcome, directory: Path) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{outcome.row}.json"
    path.write_text(json.dumps(asdict(outcome), indent=1) + "\n", "utf-8")
    return path


def load(directory: Path) -> dict[str, Outcome]:
    """All that were kept, by the name of the row."""
    files = sorted(directory.glob("*.json"))
    outcomes = [Outcome(**json.loads(path.read_text("utf-8"))) for path in files]
    return {outcome.row: outcome for outcome in outcomes}


def _rungs(outcome: Outcome) -> str:
    """Those on which the oracle stress ran to its end."""
    ran = {
        name.split(".")[1]
        for name, result in outcome.results.items()
        if name.startswith("stress.") and result == "passed"
    }
    return (
        ", ".join(rung for rung in ("mm_cid", "cpu_id", "getcpu", "thread") if rung in ran) or "-"
    )


def _cells(row: Row, outcome: Outcome | None) -> list[str]:
    if outcome is None:
        return [row.kernel, row.libc, row.isa, row.machine.name, "", "", "", "not run", "", "", ""]
    counts = [str(outcome.count(result)) for result in ("passed", "failed", "skipped")]
    return [
        *(outcome.kernel or row.kernel, outcome.libc or row.libc, row.isa, row.machine.name),
        *(*counts, outcome.verdict, _rungs(outcome), f"{outcome.operations:,}", outcome.commit),
    ]


def _failures(outcomes: Iterable[Outcome]) -> str:
    lines = []
    for outcome in outcomes:
        for name, reason in outcome.reasons.items():
            if outcome.results[name] == "failed":
                where = f"{outcome.kernel}, {outcome.libc}, {outcome.isa}, {outcome.machine}"
                lines.append(f"- {where}: `{name}`: {reason}")
    return "\n## What failed\n\n" + "\n".join(lines) + "\n" if lines else ""


def page(rows: Iterable[Row], outcomes: dict[str, Outcome]) -> str:
    """docs/guide/kernels.md, in the order of the rows."""
    rows = list(rows)
    table = "".join(f"| {' | '.join(_cells(r, outcomes.get(r.name)))} |\n" for r in rows)
    ran = [outcomes[r.name] for r in rows if r.name in outcomes]
    return _INTRODUCTION + table + _failures(ran)
