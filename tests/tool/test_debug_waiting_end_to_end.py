# SPDX-License-Identifier: MIT OR Apache-2.0
"""What threads that wait notice of the debugger, with the real library, build/release."""

import time
from pathlib import Path

import pytest
from debugged import LIBRARY, PATIENCE, compiled, report, running

for module in ("numpy", "scipy", "elftools", "rich"):
    pytest.importorskip(module)
pytestmark = pytest.mark.skipif(not LIBRARY.exists(), reason="build/release is not built")


def settled(pid: int) -> None:
    """All threads have got to where they wait."""
    from terrace.debug.waiting import all_waiting

    if not Path("/proc/self/syscall").exists():
        pytest.skip("this kernel does not tell whether a thread waits")
    ends = time.monotonic() + PATIENCE
    before = None
    while before is None or all_waiting(pid) != before:
        assert time.monotonic() < ends
        before = all_waiting(pid)
        time.sleep(0.1)


def interrupted_by(directory: Path, subcommand: str) -> tuple[list[str], set[str]]:
    """What it says of a program whose threads wait, and which of their calls ended by EINTR."""
    waits = compiled(directory, name="waits")
    with running(waits) as process:
        settled(process.pid)
        lines = report(subcommand, process.pid)
        said_by_it, _ = process.communicate(timeout=PATIENCE)
        return lines, set(said_by_it.decode().splitlines())


# As docs/guide/debugging.md has them.
FAILING_WHEN_STOPPED = {
    "epoll_wait", "epoll_wait unlimited", "recv SO_RCVTIMEO", "read SO_RCVTIMEO",
    "accept SO_RCVTIMEO", "send SO_SNDTIMEO", "sigwaitinfo", "sigtimedwait",
}  # fmt: skip


def test_where_no_thread_runs_none_is_stopped(tmp_path):
    lines, interrupted = interrupted_by(tmp_path, "verify")
    assert "no thread ran meanwhile, and none was stopped" in lines
    assert not interrupted


def test_threads_that_were_stopped_miss_no_call_but_those_of_the_guide(tmp_path):
    lines, interrupted = interrupted_by(tmp_path, "findleaks")
    assert any("stood still for" in line for line in lines)
    assert interrupted <= FAILING_WHEN_STOPPED
