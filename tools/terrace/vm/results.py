# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the guests reported: read from their consoles and kept as JSON."""

import json
import re
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

MARK = "@terrace-vm "

@dataclass
class Outcome:
    """One guest."""

    row: str
    kernel: str = ""
    libc: str = ""
    isa: str = ""
    machine: str = ""
    commit: str = ""
    date: str = ""
    rung: str = ""
    booted: bool = False
    ended: bool = False
    planned: int = 0
    results: dict[str, str] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)
    running: str = ""
    cut: str = ""
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
        if not missing:
            return verdict
        return f"{verdict}; {missing} not run" + (f", time over in {self.cut}" if self.cut else "")


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
    elif kind == "rung":
        outcome.rung = report["rung"]
    elif kind == "cut":
        outcome.cut = report["test"]
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
