# SPDX-License-Identifier: MIT OR Apache-2.0
"""`terrace doctor PID` on processes that run on Terrace, and on such as only seem to."""

import json
import os
import subprocess
import sys

import pytest

from conftest import MAIN, ROOT

BUILT = ROOT / "build" / "release"
READY = "print(flush=True); input()"

pytestmark = pytest.mark.skipif(not (BUILT / "libterrace.so").exists(), reason="not built")


def doctor(pid: int, *options: str):
    command = [sys.executable, "-I", str(MAIN), "doctor", *options, str(pid)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture
def started():
    """Starts a Python that has run `code` when this returns, and waits."""
    processes = []

    def start(code: str = "", **variables: str) -> int:
        process = subprocess.Popen(
            [sys.executable, "-I", "-c", f"{code}\n{READY}"],
            env={**os.environ, **variables}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        processes.append(process)
        assert process.stdout.readline() == b"\n"
        return process.pid

    yield start
    for process in processes:
        process.communicate(b"\n")


@pytest.mark.parametrize("library", ["libterrace.so", "libterrace-hardened.so", "libumem_malloc.so"])
def test_a_process_on_terrace(started, library):
    done = doctor(started(LD_PRELOAD=str(BUILT / library)))
    assert (done.returncode, "runs on Terrace" in done.stdout) == (0, True), done
    assert library in done.stdout


@pytest.mark.parametrize(
    ("preload", "reason"),
    [
        ("", "LD_PRELOAD did not name it when the program was started"),
        ("/nowhere/libterrace.so.0", "LD_PRELOAD names /nowhere/libterrace.so.0, and there is no such file"),
        ("libterrace.so.99", "which the dynamic linker did not load"),
        (str(BUILT / "libumem.so"), "LD_PRELOAD did not name it"),
    ],
)
def test_a_process_that_runs_on_another_malloc_and_why(started, preload, reason):
    done = doctor(started(LD_PRELOAD=preload))
    assert done.returncode == 1
    assert "does not run on Terrace" in done.stdout
    assert reason in done.stdout


def test_loaded_late_it_is_not_in_use(started):
    done = doctor(started(f"import ctypes; ctypes.CDLL({str(BUILT / 'libterrace.so')!r})"), "--json")
    found = json.loads(done.stdout)
    assert done.returncode == 1
    assert found["usable"] is False
    assert "its malloc is not in use" in found["reason"]


def test_status_2_where_it_can_not_be_told():
    done = doctor(2**22 + 1)
    assert (done.returncode, done.stderr) == (2, f"terrace: there is no process {2**22 + 1}\n")
