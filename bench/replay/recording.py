# SPDX-License-Identifier: MIT OR Apache-2.0
"""Traces of real programs in build/traces: recorded once, and made ready for replay again when the replay was built again."""

import fcntl
import json
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from recorded import Recorded
from workload import Failed, clean_environment

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT = 600


def directory(scale: float) -> Path:
    """Of traces of another size somewhere else: a smoke test's are not to be measured."""
    return ROOT / "build" / "traces" / ("" if scale == 1 else f"scale-{scale:g}")


def plan_path(recorded: Recorded, scale: float) -> Path:
    return directory(scale) / f"{recorded.name}.plan"


def summary(build: Path, trace: Path) -> dict[str, Any]:
    done = subprocess.run([str(build / "tools" / "record" / "terrace_trace"), "summary", str(trace)], capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        raise Failed(done.stderr.strip())
    told: dict[str, Any] = json.loads(done.stdout)
    return told


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Two processes that record the same program at the same time would write to one file."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _run_recorded(build: Path, recorded: Recorded, scale: float, scratch: Path, traces: Path) -> None:
    recorded.prepare(scratch, scale)
    library = build / "tools" / "record" / "libterrace_record.so"
    environment = clean_environment() | recorded.environment
    environment |= {"LD_PRELOAD": str(library), "TERRACE_RECORD_FILE": f"{traces}/%p"}
    done = subprocess.run(recorded.command(scratch, scale), cwd=scratch, env=environment, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, errors="replace", timeout=TIMEOUT, check=False)
    if done.returncode != 0:
        raise Failed(f"{recorded.name} ended with {done.returncode} while it was recorded: {done.stderr.strip()[-200:]}")


def _the_trace(build: Path, recorded: Recorded, traces: Path) -> Path:
    """Of the process that is wanted the one with most calls."""
    told = [(summary(build, path), path) for path in sorted(traces.iterdir()) if path.stat().st_size > 0]
    fitting = [(s["calls"], path) for s, path in told if s["command"] == recorded.process and s["incomplete"] == 0]
    if not fitting:
        raise Failed(f"{recorded.name}: none of its processes, {' '.join(s['command'] for s, _ in told)}, is {recorded.process}")
    return max(fitting)[1]


def record(build: Path, recorded: Recorded, scale: float) -> Path:
    """The trace; the program runs only if it is not there."""
    target = directory(scale) / f"{recorded.name}.trace"
    if target.exists():
        return target
    with tempfile.TemporaryDirectory(dir=target.parent) as name:
        scratch, traces = Path(name) / "scratch", Path(name) / "traces"
        scratch.mkdir()
        traces.mkdir()
        _run_recorded(build, recorded, scale, scratch, traces)
        _the_trace(build, recorded, traces).rename(target)
    return target


def plan(build: Path, recorded: Recorded, scale: float = 1.0) -> Path:
    """What bench_replay replays, recorded if need be."""
    replay = build / "bench" / "replay" / "bench_replay"
    made = plan_path(recorded, scale)
    with _locked(made.parent):
        trace = record(build, recorded, scale)
        newest = max(trace.stat().st_mtime, replay.stat().st_mtime)
        if not made.exists() or made.stat().st_mtime < newest:
            done = subprocess.run([str(replay), str(trace), f"plan={made}"], capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise Failed(done.stderr.strip())
    return made
