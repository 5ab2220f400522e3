# SPDX-License-Identifier: MIT OR Apache-2.0
"""Recording the program with known calls, reading what it left."""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

KNOWN = 70_000  # the program's own sizes are above, those of libc and of the C++ runtime below (but for a pool of 72,704 bytes)
POOL = 72_704


@dataclass(frozen=True)
class Call:
    kind: str
    thread: int
    size: int
    alignment: int
    new: int | None
    old: int | None

    @property
    def known(self) -> bool:
        return self.size > KNOWN and self.size != POOL

    @property
    def plain(self) -> tuple[str, int, int]:
        return self.kind, self.size, self.alignment


@dataclass(frozen=True)
class Tools:
    recorder: Path
    reader: Path
    calls: Path
    library: Path
    replay: Path | None
    broken: Path | None

    def record(self, scratch: Path, *arguments: str, below: Sequence[Path] = ()) -> tuple[int, list[Path]]:
        """The program's status and the traces, oldest process first; `below` is preloaded behind the recorder."""
        directory = scratch / ("traces-" + "-".join(arguments))
        directory.mkdir()
        preload = ":".join(map(str, (self.recorder, *below)))
        environment = {**os.environ, "LD_PRELOAD": preload, "TERRACE_RECORD_FILE": f"{directory}/%p"}
        with subprocess.Popen([str(self.calls), *arguments], env=environment) as process:
            status = process.wait(60)
        mine = str(process.pid)
        return status, sorted(directory.iterdir(), key=lambda p: (p.name.split(".")[0] != mine, p.name))

    def read(self, what: str, trace: Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run([str(self.reader), what, str(trace)], capture_output=True, text=True, check=False)

    def summary(self, trace: Path) -> dict[str, Any]:
        done = self.read("summary", trace)
        assert done.returncode == 0, done.stderr
        told: dict[str, Any] = json.loads(done.stdout)
        return told

    def known(self, trace: Path) -> list[Call]:
        return [call for call in self.list(trace) if call.known]

    def list(self, trace: Path) -> list[Call]:
        """All calls; what must hold of every trace is checked."""
        done = self.read("calls", trace)
        assert done.returncode == 0, done.stderr
        calls = [parse(line) for line in done.stdout.splitlines()]
        check(calls)
        return calls


def parse(line: str) -> Call:
    kind, thread, size, alignment, new, old = line.split()
    return Call(kind, int(thread), int(size), int(alignment), None if new == "-" else int(new), None if old == "-" else int(old))


def check(calls: Sequence[Call]) -> None:
    """Blocks have numbers in order; each is released at most once, after it was allocated, with the size it has."""
    live: dict[int, int] = {}
    created = 0
    for call in calls:
        if call.old is not None:
            size = live.pop(call.old)
            assert call.kind == "realloc" or size == call.size, call
        if call.new is not None:
            assert call.new == created, call
            created += 1
            live[call.new] = call.size
        assert (call.new is None) == (call.kind == "free"), call
        assert (call.old is None) == (call.kind not in ("free", "realloc")), call


def main(cases: Sequence[Callable[[Tools, Path], None]]) -> int:
    parser = argparse.ArgumentParser()
    for name in ("recorder", "reader", "calls", "library"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--replay", type=Path)
    parser.add_argument("--broken", type=Path)
    parser.add_argument("case")
    given = vars(parser.parse_args())
    case = {c.__name__: c for c in cases}[given.pop("case")]
    with tempfile.TemporaryDirectory() as scratch:
        case(Tools(**given), Path(scratch))
    print(f"{case.__name__}: as it must be", file=sys.stderr)
    return 0
