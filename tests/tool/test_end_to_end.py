# SPDX-License-Identifier: MIT OR Apache-2.0
"""The command with the real library, build/release/libterrace.so."""

import json
import os
import statistics
import subprocess
import sys
import time

import pytest

from conftest import MAIN, ROOT

LIBRARY = ROOT / "build" / "release" / "libterrace.so"
PYTHON = os.path.realpath(sys.executable)

pytestmark = pytest.mark.skipif(not LIBRARY.exists(), reason="build/release is not built")
pytest.importorskip("rich")


def terrace(*arguments: str, **variables: str):
    # Named, so that a source that is edited meanwhile starts no build from inside a test.
    environment = {**os.environ, "TERRACE_LIBRARY": str(LIBRARY), **variables}
    return subprocess.run(
        [sys.executable, "-I", str(MAIN), *arguments],
        env=environment, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def run_json(tmp_path, *program: str, **variables: str):
    done = terrace("run", "--json", str(tmp_path / "o"), "--", *program, **variables)
    assert done.returncode == 0, done.stderr
    return json.loads((tmp_path / "o").read_text())


def test_a_real_program_ends_with_the_table():
    code = "import json; print(len(json.dumps([{'i': i} for i in range(10**5)])))"
    done = terrace("run", "--", PYTHON, "-c", code)
    assert done.returncode == 0
    assert done.stdout == "1388890\n"
    assert "What each level of Terrace did" in done.stderr
    assert "; placement punctuated; held " in done.stderr


def test_the_core_level_balances_with_what_is_live(tmp_path):
    total = run_json(tmp_path, PYTHON, "-c", "x = [bytes(i) for i in range(1, 2000)]")
    assert total["processes"] == 1
    values = total["levels"][0]["values"]
    assert values["allocations"] >= values["frees"] > 0
    live = sum(
        c["size"] * (near["allocations"] - near["frees"])
        for c in total["classes"]
        for near in [next(iter(c["levels"].values()))]
    )
    assert 0 < live <= total["memory"]["live"]


def test_processes_that_the_program_starts_are_added(tmp_path):
    code = f"import subprocess; [subprocess.run([{PYTHON!r}, '-c', '1']) for _ in range(3)]"
    assert run_json(tmp_path, PYTHON, "-c", code)["processes"] == 4


@pytest.mark.parametrize("rung", ["mm_cid", "cpu_id", "getcpu", "thread"])
def test_every_rung_that_the_doctor_calls_working_runs_programs(tmp_path, rung):
    findings = json.loads(terrace("doctor", "--json").stdout)
    if not findings["rungs"][rung]["works"]:
        pytest.skip(findings["rungs"][rung]["message"] or "not possible here")
    total = run_json(tmp_path, PYTHON, "-c", "print(1)", TERRACE_RUNG=rung)
    assert total["rungs"] == {rung: 1}


def test_the_doctor_finds_the_library_usable():
    done = terrace("doctor")
    assert done.returncode == 0, done.stdout
    assert "rung in use" in done.stdout


def test_later_starts_cost_little():
    """Loose on purpose: the machine may be busy. The figure itself is printed."""
    command = ["/bin/true"]
    through = [str(ROOT / "terrace"), "run", "--", *command]
    environment = {**os.environ, "TERRACE_LIBRARY": str(LIBRARY)}

    def seconds(arguments: list[str]) -> float:
        began = time.monotonic()
        subprocess.run(arguments, env=environment, capture_output=True, check=True)
        return time.monotonic() - began

    plain = statistics.median(seconds(command) for _ in range(7))
    added = statistics.median(seconds(through) for _ in range(7)) - plain
    print(
        f"`terrace run` adds {added * 1000:.0f} ms to {plain * 1000:.1f} ms (aim: less than 200 ms)"
    )
    assert added < 5
