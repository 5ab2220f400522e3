# SPDX-License-Identifier: MIT OR Apache-2.0
"""`terrace record` with the real recorder, build/release/tools/record."""

import json
import os
import subprocess
import sys

import pytest

from conftest import MAIN, ROOT

FOLDER = ROOT / "build" / "release" / "tools" / "record"
PYTHON = os.path.realpath(sys.executable)


def is_current() -> bool:
    """Else the command would build, from inside a test."""
    made = [FOLDER / "libterrace_record.so", FOLDER / "terrace_trace"]
    newest = max(path.stat().st_mtime for path in (ROOT / "tools" / "record").iterdir())
    return all(path.exists() and path.stat().st_mtime >= newest for path in made)


pytestmark = pytest.mark.skipif(
    not is_current(), reason="the recorder in build/release is not up to date"
)
pytest.importorskip("rich")


def record(*arguments: str):
    return subprocess.run(
        [sys.executable, "-I", str(MAIN), "record", *arguments],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def told(trace):
    command = [str(FOLDER / "terrace_trace"), "summary", str(trace)]
    return json.loads(subprocess.run(command, capture_output=True, check=True).stdout)


def test_output_and_status_are_the_programs_and_the_trace_is_there(tmp_path):
    out = tmp_path / "t"
    done = record("-o", str(out), "--", PYTHON, "-c", "import sys; print('hello'); sys.exit(3)")
    assert (done.returncode, done.stdout) == (3, "hello\n")
    summary = told(out)
    assert f"{summary['calls']:,} calls by 1 thread of python" in done.stderr
    assert summary["malloc"] > 100


def test_children_have_traces_of_their_own(tmp_path):
    out = tmp_path / "t"
    done = record("-o", str(out), "--", "sh", "-c", f"{PYTHON} -c 1; exec {PYTHON} -c 2")
    assert done.returncode == 0
    assert told(out)["command"].startswith("python")
    names = [told(path)["command"] for path in tmp_path.glob("t.*")]
    assert sum(name.startswith("python") for name in names) == 1
    assert len(list(tmp_path.iterdir())) == 1 + len(names)


def test_a_killed_program_leaves_a_trace_and_the_signal_passes_through(tmp_path):
    code = "import os; os.kill(os.getpid(), 9)"
    done = record("-o", str(tmp_path / "t"), "--", PYTHON, "-c", code)
    assert done.returncode == -9
    assert told(tmp_path / "t")["calls"] > 100


def test_the_summary_of_a_program_and_of_a_trace_are_the_same(tmp_path):
    first = record("--summary", "-o", str(tmp_path / "t"), "--", PYTHON, "-c", "1")
    second = record("--summary", str(tmp_path / "t"))
    assert first.stdout == second.stdout
    assert "Sizes asked for" in first.stdout


def test_a_file_that_is_no_trace_is_status_2(tmp_path):
    (tmp_path / "x").write_text("x" * 10_000)
    done = record("--summary", str(tmp_path / "x"))
    assert done.returncode == 2
    assert "no trace" in done.stderr
    assert done.stderr.count("\n") == 1
