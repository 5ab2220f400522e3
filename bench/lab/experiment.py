# SPDX-License-Identifier: MIT OR Apache-2.0
"""One program with many configurations, in alternating order; or what an earlier run has measured."""

import argparse
import json
from collections.abc import Mapping

from interleave import Rounds, Subject, Values, interleaved, measured, run

MIB = 2**20
LEVELS = ("thread", "core", "processor", "node")


def _values(text: str) -> Values:
    values: Values = json.loads(text)
    for what in ("wasted_bytes", "partial", "labs", "lab_bytes"):
        if f"thread.{what}" in values:
            values[what] = sum(values[f"{level}.{what}"] for level in LEVELS)
    return values


def measure(options: argparse.Namespace, experiment: str, program: str, configurations: Mapping[str, str], rounds: int) -> Rounds:
    """By name of the configuration; each is a line of KEY=VALUE for the program."""
    binary = str(options.build / "bench" / "lab" / f"bench_lab_{program}")
    subjects = [Subject(name) for name in configurations]
    results = measured(options, f"lab-{experiment}", lambda: interleaved(
        subjects, rounds, lambda s: _values(run(s, [binary, *configurations[s.name].split()]))))
    if missing := configurations.keys() - results.keys():
        raise SystemExit(f"what was stored of {experiment} has no {', '.join(sorted(missing))}")
    return results
