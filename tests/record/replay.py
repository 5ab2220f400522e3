# SPDX-License-Identifier: MIT OR Apache-2.0
"""Traces of calls.cpp are replayed: every call, on glibc's allocator and on Terrace; a broken one is noticed."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from harness import Tools, main
from record import damaged_files


def replay(tools: Tools, trace: Path, *options: str, preload: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "LD_PRELOAD": str(preload or "")}
    command = [str(tools.replay), str(trace), *options]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)


def said(done: subprocess.CompletedProcess[str]) -> dict[str, float]:
    assert done.returncode == 0, done
    assert len(done.stdout.splitlines()) == 1
    return json.loads(done.stdout)


def recorded_replay(tools: Tools, scratch: Path, trace: Path) -> Path:
    """The trace of the replay of a trace."""
    pattern = scratch / f"again-{trace.name}"
    environment = {**os.environ, "LD_PRELOAD": str(tools.recorder), "TERRACE_RECORD_FILE": str(pattern)}
    plan = scratch / f"plan-{trace.name}"
    assert replay(tools, trace, f"plan={plan}").returncode == 0
    subprocess.run([str(tools.replay), str(plan)], env=environment, stdout=subprocess.DEVNULL, check=True, timeout=60)
    return pattern


def replays_every_call(tools: Tools, scratch: Path) -> None:
    for what in ("kinds", "threads", "fork", "exec"):
        _, traces = tools.record(scratch, what)
        for trace in traces:
            calls = tools.summary(trace)
            for preload in (None, tools.library):
                for options in ((), ("times=3",), ("latency=1",)):
                    values = said(replay(tools, trace, *options, preload=preload))
                    times = 3 if "times=3" in options else 1
                    assert values["operations"] == times * calls["calls"]
                    assert ("malloc_p50" in values) == ("latency=1" in options)
            again = tools.known(recorded_replay(tools, scratch, trace))
            expected = sorted(call.plain for call in tools.known(trace))
            assert sorted(call.plain for call in again if call.kind != "free" or call.size > 0) == expected


def many_short_threads(tools: Tools, scratch: Path) -> None:
    """They wait for each other in all sorts of ways: a replay that loses a waking-up never ends."""
    _, traces = tools.record(scratch, "short")
    told = tools.summary(traces[0])
    assert len(told["threads"]) == 1701
    assert told["from_other_threads"] >= 1700
    for preload in (None, tools.library):
        assert said(replay(tools, traces[0], "times=3", preload=preload))["threads"] == 1701


def cut_trace_replays_to_its_end(tools: Tools, scratch: Path) -> None:
    status, traces = tools.record(scratch, "die")
    assert status == -signal.SIGKILL
    values = said(replay(tools, traces[0], "settled=1"))
    assert values["operations"] == tools.summary(traces[0])["calls"] > 60_000
    assert values["settled_rss"] > 0


def replay_of_damaged_files(tools: Tools, scratch: Path) -> None:
    _, traces = tools.record(scratch, "kinds")
    for path, text in damaged_files(traces[0].read_bytes(), scratch):
        for options in ((), (f"plan={scratch / 'plan'}",)):
            done = replay(tools, path, *options)
            assert done.returncode == 2, (path.name, done)
            assert text in done.stderr, (path.name, done.stderr)
            assert done.stdout == ""
            assert not list(scratch.glob("plan*"))


def replay_notices_a_broken_allocator(tools: Tools, scratch: Path) -> None:
    _, traces = tools.record(scratch, "threads")
    done = replay(tools, traces[0], preload=tools.broken)
    assert done.returncode == 3, done
    assert "lost its contents" in done.stderr


if __name__ == "__main__":
    sys.exit(main((
        replays_every_call, many_short_threads, cut_trace_replays_to_its_end, replay_of_damaged_files,
        replay_notices_a_broken_allocator,
    )))
