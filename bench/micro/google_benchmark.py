# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs a Google Benchmark program under an allocator and reads one counter of each benchmark."""

import json
from pathlib import Path

from interleave import Subject, Values, run


def measure(subject: Subject, program: Path, pattern: str, seconds: float, cpus: set[int] | None = None) -> Values:
    command = [str(program), f"--benchmark_filter={pattern}", f"--benchmark_min_time={seconds}", "--benchmark_format=json"]
    report = json.loads(run(subject, command, cpus))
    return {b["name"].replace("/real_time", ""): b["ns"] for b in report["benchmarks"]}
