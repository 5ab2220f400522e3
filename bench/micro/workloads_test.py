# SPDX-License-Identifier: MIT OR Apache-2.0
"""Tests of the programs behind workloads.py, for ctest: workloads_test.py BUILD TEST [ARGUMENT]."""

import json
import os
import subprocess
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "common"))

FIELDS = ("seconds", "cpu_seconds", "faults", "operations")
LATENCIES = tuple(f"{call}_{part}" for call in ("malloc", "free") for part in ("p50", "p99", "p999"))
# The fault of tests/stress/broken_allocator.cpp, and a program that can meet it.
BROKEN = {
    "duplicate": "larson", "overlap": "rptest", "corrupt": "alloc_test", "dirty": "calloc_realloc", "misaligned": "aligned",
    "forgetful": "calloc_realloc",
}

Done = subprocess.CompletedProcess


def run(build: Path, name: str, *settings: str, **environment: str) -> Done[str]:
    clean = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD" and not k.startswith("TERRACE_")}
    command = [str(build / "bench" / "micro" / "bench_micro"), name, *settings]
    return subprocess.run(command, env=clean | environment, capture_output=True, text=True, check=False)


def said(done: Done[str], *fields: str) -> dict[str, float]:
    assert done.returncode == 0, f"{done.args} ended with {done.returncode}: {done.stderr}"
    values: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    for field in fields:
        assert values[field] >= 0, f"{done.args}: {field} is {values[field]}"
    return values


def works(build: Path, name: str) -> None:
    """Its fields are there, and its work is the same under two allocators that check out."""
    library = {"LD_PRELOAD": str(build / "libterrace.so")}
    tiny = ("work=0.005", "check=1")
    once = said(run(build, name, *tiny, "latency=1"), *FIELDS, *LATENCIES)
    assert once["operations"] > 0
    assert once["malloc_p50"] <= once["malloc_p99"] <= once["malloc_p999"]
    ours = said(run(build, name, *tiny, **library), *FIELDS)
    assert ours["operations"] == once["operations"], "the work depends on the allocator"
    for environment in ({}, library):
        said(run(build, name, *tiny, "threads=3", **environment), *FIELDS)
        said(run(build, name, "work=0.005", "threads=2", "latency=1", **environment), *FIELDS, *LATENCIES)
    for wrong in ("threads=none", "threads=0", "colour=red", "nonsense", "check=2"):
        done = run(build, name, wrong)
        assert done.returncode == 2 and done.stderr.startswith("what is "), f"{wrong}: {done}"


def settles(build: Path) -> None:
    values = said(run(build, "larson", "work=0.005", "threads=2", "settled=1"), *FIELDS)
    assert values["settled_rss"] > 0


def finds_broken_allocators(build: Path, allocator: str) -> None:
    for fault, name in BROKEN.items():
        for chosen, status in (("none", 0), (fault, 3)):
            done = run(build, name, "work=0.02", "threads=2", "check=1", LD_PRELOAD=allocator, BROKEN=chosen)
            assert done.returncode == status, f"{name} on {chosen}: {done.returncode}, {done.stderr}"


def list_of_workloads(build: Path) -> None:
    """The list is about programs that exist, and what one of them measures is what a workload has to say."""
    import tempfile

    import workloads
    from interleave import Subject

    found = workloads.workloads(build, 0.005) + workloads.scaling(build, 0.005)
    assert len({w.key for w in found}) == len(found)
    there = run(build, "").stderr.split("one of: ")[1].split()
    assert sorted(there) == sorted(program.name for program in workloads.PROGRAMS)
    chosen = {w.name: w for w in found if w.name in ("sizes", "simple")}
    with tempfile.TemporaryDirectory() as scratch:
        subject = Subject("terrace", {"LD_PRELOAD": str(build / "libterrace.so")})
        small = chosen["sizes"].measure(subject, Path(scratch))
        full = chosen["simple"].measure(subject, Path(scratch))
        assert chosen["simple"].latency is not None and chosen["sizes"].latency is None
        timed = chosen["simple"].latency(subject, Path(scratch))
    assert {*FIELDS, "peak_rss", "pair_ns/8"} <= small.keys()
    assert {*FIELDS, "peak_rss", "settled_rss"} <= full.keys()
    assert timed.keys() >= set(LATENCIES)


TESTS = {"works": works, "settles": settles, "finds_broken_allocators": finds_broken_allocators, "list": list_of_workloads}

if __name__ == "__main__":
    TESTS[sys.argv[2]](Path(sys.argv[1]), *sys.argv[3:])
