# SPDX-License-Identifier: MIT OR Apache-2.0
"""What was found, in a file for each program, written after each step: a run that was ended goes on where it was."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from interleave import Spread, spread
from program import Results, Setting, Values


@dataclass
class Record:
    """Of one program with one build of the library."""

    file: Path
    library: str
    checks: dict[str, dict[str, str]] = field(default_factory=dict)  # by setting
    again: dict[str, list[str]] = field(default_factory=dict)  # tests that did not pass before they ran once more
    rounds: dict[str, list[Values]] = field(default_factory=dict)

    def save(self) -> None:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        known = {"library": self.library, "checks": self.checks, "again": self.again, "rounds": self.rounds}
        text = json.dumps(known, indent=1)
        partial = self.file.with_suffix(".partial")
        partial.write_text(text + "\n", encoding="utf-8")
        partial.rename(self.file)

    def put_check(self, setting: Setting, results: Results, again: list[str]) -> None:
        self.checks[setting.name] = dict(results)
        self.again[setting.name] = again
        self.save()

    def put_round(self, setting: Setting, values: Values) -> None:
        self.rounds.setdefault(setting.name, []).append(values)
        self.save()

    def has_round(self, setting: Setting, number: int) -> bool:
        return len(self.rounds.get(setting.name, [])) > number


def opened(file: Path, library: str) -> Record:
    """What was found with another library, or can not be read, is begun anew."""
    try:
        known: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        if known["library"] == library:
            return Record(file, library, known["checks"], known["again"], known["rounds"])
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return Record(file, library)


def counts(results: Results) -> tuple[int, int, int]:
    """Passed, failed, skipped."""
    values = list(results.values())
    return values.count("passed"), values.count("failed"), values.count("skipped")


def worse(base: Results, ours: Results) -> list[str]:
    """Tests that passed on malloc and did not on libumem; one that is absent did not run."""
    return [test for test, result in base.items() if result == "passed" and ours.get(test) != "passed"]


def ratios(record: Record, ours: Setting, base: Setting) -> Spread | None:
    """Of rates, within each round."""
    pairs = list(zip(record.rounds.get(ours.name, []), record.rounds.get(base.name, []), strict=False))
    return spread(a["rate"] / b["rate"] for a, b in pairs) if pairs else None
