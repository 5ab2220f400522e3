# SPDX-License-Identifier: MIT OR Apache-2.0
"""Order, failures, and going on after a run was killed."""

import io
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import made_up
import pytest
from campaign import Plan, measure_all, steps
from catalogue import catalogue, chosen
from interleave import AGAIN, Subject
from store import LATENCY, WORK, Header, Store
from terminal import Console
from workload import Failed, Workload

SUBJECTS = [Subject("glibc"), Subject("terrace"), Subject("peer")]


def _workload(name, measure=lambda _s, _d: {"seconds": 1.0}, **more):
    return Workload(name, "micro", 1, measure, **more)


def _run(plan, path, **more):
    store = Store(path)
    store.begin(Header(allocators={s.name: {} for s in plan.subjects}))
    measure_all(plan, store, Console(file=io.StringIO()), **more)
    store.close()
    return store


def test_within_a_round_all_allocators_of_a_workload_run_together_and_the_first_one_twice():
    plan = Plan([_workload("a"), _workload("b", latency=lambda _s, _d: {})], SUBJECTS, 3, 1)
    found = list(steps(plan))
    work = [s.key for s in found if s.key.kind == WORK]
    assert [k.workload for k in work[:8]] == ["a/1"] * 4 + ["b/1"] * 4
    for i in range(0, len(work), 4):
        assert {k.allocator for k in work[i : i + 4]} == {"glibc", "terrace", "peer", AGAIN}
    assert {(s.key.workload, s.key.round) for s in found if s.key.kind == LATENCY} == {("b/1", 0)}
    assert all(s.subject.name == "glibc" for s in found if s.key.allocator == AGAIN)
    assert len({s.key for s in found}) == len(found) == 2 * 4 * 3 + 4


def test_nobody_always_follows_the_same_other_and_a_campaign_that_goes_on_has_the_same_order():
    plan = Plan([_workload(f"w{i}") for i in range(60)], SUBJECTS, 2, 0)
    found = [s.key for s in steps(plan)]
    after = Counter((a.allocator, b.allocator) for a, b in zip(found, found[1:], strict=False) if a.workload == b.workload)
    assert len(after) == 4 * 3
    assert all(15 <= n <= 45 for n in after.values())  # 30 each, the same every time this test runs
    assert [s.key for s in steps(plan)] == found


def test_whoever_begins_does_not_wait_for_files_that_the_others_find_in_memory(tmp_path):
    runs = []

    def measure(subject, _directory):
        runs.append(subject.name)
        return {"seconds": len(runs)}

    path = tmp_path / "x.jsonl"
    store = _run(Plan([Workload("a", "program", 1, measure)], SUBJECTS, 2, 0), path)
    assert len(runs) == 2 * (1 + 4) and runs[0] == runs[5] == "glibc"
    assert sorted(m.values["seconds"] for m in store.results.values()) == [2, 3, 4, 5, 7, 8, 9, 10]
    runs.clear()
    _run(Plan([_workload("a", measure)], SUBJECTS, 1, 0), tmp_path / "y.jsonl")
    assert sorted(runs) == ["glibc", "glibc", "peer", "terrace"]


def test_a_failure_does_not_stop_the_others_and_is_not_tried_for_ever(tmp_path):
    def measure(subject, _directory):
        if subject.name == "peer":
            raise Failed("ended with -11")
        return {"seconds": 2}

    def broken(_subject, _directory):
        return {"seconds": json.loads("nothing of the kind")}

    store = _run(Plan([_workload("a", measure), _workload("b", broken)], SUBJECTS, 5, 0), tmp_path / "x.jsonl")
    peers = [m for m in store.results.values() if m.key.workload == "a/1" and m.key.allocator == "peer"]
    assert [m.failed for m in peers] == ["ended with -11"] * 2
    assert sum(not m.failed for m in store.results.values()) == 15
    assert all(m.failed.startswith("JSONDecodeError") for m in store.results.values() if m.key.workload == "b/1")


def test_a_preparation_that_fails_is_told_for_every_allocator_and_made_once(tmp_path):
    calls = []

    def prepare(directory):
        calls.append(directory)
        raise Failed("no such input")

    store = _run(Plan([_workload("a", prepare=prepare)], SUBJECTS, 1, 0), tmp_path / "x.jsonl")
    assert len(calls) == 1
    assert {m.failed for m in store.results.values()} == {"preparation: no such input"}


def test_what_failed_is_measured_again_when_asked_to(tmp_path):
    working = []

    def measure(_subject, _directory):
        if not working:
            raise Failed("not yet")
        return {"seconds": 1}

    plan = Plan([_workload("a", measure)], SUBJECTS, 2, 0)
    _run(plan, tmp_path / "x.jsonl")
    working.append(True)
    assert all(m.failed for m in _run(plan, tmp_path / "x.jsonl").results.values())
    _run(plan, tmp_path / "x.jsonl", retry=True)
    read = Store(tmp_path / "x.jsonl").results
    assert len(read) == 8
    assert not any(m.failed for m in read.values())


def test_workloads_are_chosen_by_group_and_name():
    found = [
        _workload("ring"),
        Workload("ring", "micro", 4, dict),
        Workload("ring", "threads", 8, dict),
        Workload("gcc", "program", 1, dict),
    ]

    def keys(groups, patterns):
        return [w.key for w in chosen(found, groups, patterns)]

    assert keys(["micro"], []) == ["ring/1", "ring/4", "ring/8"]
    assert keys(["micro", "program"], ["ring/4", "g*"]) == ["ring/4", "gcc/1"]
    with pytest.raises(ValueError, match="no workload is called rong; there are: gcc ring"):
        keys(["micro", "program"], ["rong"])


FAKE = """
import time
from workload import Failed, Workload

def _measure(subject, scratch):
    time.sleep(0.02)
    return {"seconds": 0.5, "peak_rss": 2.0**20}

def workloads(build, seconds_scale=1.0):
    return [Workload(name, "micro", 1, _measure, latency=_measure) for name in ("one", "two", "three")]

def scaling(build, seconds_scale=1.0):
    return [Workload("one", "threads", 2, _measure)]
"""


def _bench(tmp_path: Path) -> Path:
    for folder in ("micro", "apps"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "workloads.py").write_text(FAKE if folder == "micro" else FAKE.replace('"one"', '"four"'))
    return tmp_path


def test_modules_of_the_same_name_are_kept_apart_and_an_absent_one_is_told(tmp_path):
    found = catalogue(tmp_path / "build", _bench(tmp_path))
    assert [w.key for w in found.workloads].count("four/1") == 1
    assert {"one/1", "one/2", "four/2"} <= {w.key for w in found.workloads}
    assert set(found.programs) == {"micro", "apps"}
    assert found.missing == ["no workloads of bench/replay: there is no workloads.py"]


RUN = """
import sys
from pathlib import Path
import made_up
from campaign import Plan, measure_all
from catalogue import catalogue
from interleave import Subject
from store import Header, Store
from terminal import Console

bench, file = map(Path, sys.argv[1:])
workloads = catalogue(bench / "build", bench, ("micro",)).workloads
store = Store(file)
store.begin(Header(allocators={"glibc": {}, "terrace": {}}, workloads={w.key: {} for w in workloads}))
measure_all(Plan(workloads, [Subject("glibc"), Subject("terrace")], 3, 1), store, Console())
"""


def _start(tmp_path, file):
    environment = os.environ | {"PYTHONPATH": str(Path(made_up.__file__).parent)}
    return subprocess.Popen([sys.executable, "-c", RUN, str(tmp_path), str(file)], env=environment, stdout=subprocess.DEVNULL)


def test_a_killed_run_goes_on_and_measures_everything_once(tmp_path):
    _bench(tmp_path)
    file = tmp_path / "x.jsonl"
    killed = _start(tmp_path, file)
    deadline = time.monotonic() + 60
    while not file.exists() or file.read_bytes().count(b"\n") < 6:
        assert killed.poll() is None and time.monotonic() < deadline, "it ended, or never began"
        time.sleep(0.005)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    before = [line for line in file.read_text().splitlines() if '"key"' in line]
    assert 5 <= len(before) < 45, "it was to be killed in the middle"

    assert _start(tmp_path, file).wait() == 0
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    counted = Counter(json.dumps(line["key"], sort_keys=True) for line in lines if "key" in line)
    assert len(counted) == 4 * 3 * 3 + 3 * 3
    assert set(counted.values()) == {1}
    assert sum("header" in line for line in lines) == 2
