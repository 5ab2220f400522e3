# SPDX-License-Identifier: MIT OR Apache-2.0
"""The debugger on live processes and on core files, with the real library, build/release."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import MAIN
from debugged import (
    BUILD,
    LIBRARY,
    PATIENCE,
    aborted,
    compiled,
    in_gdb,
    report,
    running,
    said,
    terrace,
)

for module in ("numpy", "scipy", "elftools", "rich"):
    pytest.importorskip(module)
pytestmark = pytest.mark.skipif(not LIBRARY.exists(), reason="build/release is not built")

# By their size classes, the blocks of leaks.c that something reaches: one for each kind of root.
KEPT = {"16", "1728", "1920", "2304", "2816", "3328", "3840", "4608", "large"}


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return compiled(tmp_path_factory.mktemp("program"))


@pytest.fixture(scope="module")
def core(program, tmp_path_factory):
    return aborted(program, tmp_path_factory.mktemp("core"), 9, 200)


def leaked(lines: list[str]) -> tuple[int, int]:
    """Blocks and bytes of the report's line of totals."""
    total = next(line for line in lines if line.startswith(("process ", "core file ")))
    if total.endswith("no leaks"):
        return 0, 0
    match = re.search(r": ([\d,]+) blocks? leaked, ([\d,]+) bytes$", total)
    assert match, lines
    return int(match[1].replace(",", "")), int(match[2].replace(",", ""))


def first_address(lines: list[str]) -> int:
    found = next(re.findall(r"0x[0-9a-f]+", line) for line in lines if " 0x" in line)
    return int(found[0], 16)


def in_the_end(subcommand: str, pid: int, good) -> None:
    """Of a program whose threads are in Terrace nearly all the time: which a report may meet."""
    ends = time.monotonic() + PATIENCE
    while True:
        _, lines = said(subcommand, pid)
        if good(lines):
            return
        assert time.monotonic() < ends, "\n".join(lines)


def has_no_fault(lines: list[str]) -> bool:
    return any(": no fault in " in line for line in lines)


@pytest.mark.parametrize("rung", ["mm_cid", "cpu_id", "getcpu", "thread"])
def test_exactly_what_is_leaked_is_found_on_every_rung(program, rung):
    with running(program, 17, 100, TERRACE_RUNG=rung) as process:
        assert leaked(report("findleaks", process.pid)) == (17, 17 * 112)


@pytest.mark.parametrize("placement", ["none", "punctuated", "odd", "random"])
def test_blocks_are_found_wherever_they_are_placed(program, placement):
    with running(program, 23, 600, TERRACE_PLACEMENT=placement) as process:
        assert leaked(report("findleaks", process.pid))[0] == 23
        assert "no fault" in report("verify", process.pid)[0]


def test_a_program_that_reaches_all_its_blocks_has_no_leaks(program):
    with running(program, 0, 100) as process:
        done = terrace("findleaks", process.pid)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert leaked(lines) == (0, 0)
    assert re.search(r"stood still for [\d.]+ ms", lines[-1])


def test_without_roots_each_kind_of_block_is_leaked(program, monkeypatch):
    """The blocks that the tests above do not see reported are there, and in no other's care."""
    from terrace.debug import findleaks
    from terrace.debug.reports import open_target

    monkeypatch.setattr(findleaks, "roots", lambda *_: [])
    with running(program, 1, 100) as process:
        target = open_target(str(process.pid))
        capture = target.capture

        def without_registers(select, registers):
            copy = capture(select, registers)
            copy.threads.clear()
            return copy

        target.capture = without_registers
        found = findleaks.find(target)
    assert {g.owner.name for g in found.groups} >= KEPT | {"112"}


def test_a_long_list_is_followed_to_its_end(program):
    with running(program, "list", 16, 64, 1000) as process:
        assert leaked(report("findleaks", process.pid)) == (1000, 64_000)


def test_threads_that_allocate_meanwhile_add_nothing(program):
    with running(program, "busy", 7, 100) as process:
        for _ in range(2):
            in_the_end("findleaks", process.pid, lambda lines: leaked(lines) == (7, 7 * 112))
            in_the_end("verify", process.pid, has_no_fault)


def state(pid: int) -> str:
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return next(line.split(None, 1)[1] for line in status.splitlines() if line.startswith("State"))


def test_a_stopped_process_stays_stopped(program):
    with running(program, 4, 100) as process:
        process.send_signal(signal.SIGSTOP)
        os.waitpid(process.pid, os.WUNTRACED)
        assert leaked(report("findleaks", process.pid))[0] == 4
        # Who was let go goes through the kernel once more, on a CPU, until it stands still again.
        ends = time.monotonic() + PATIENCE
        while state(process.pid) != "T (stopped)" and time.monotonic() < ends:
            time.sleep(0.01)
        assert state(process.pid) == "T (stopped)"
        process.send_signal(signal.SIGCONT)


def test_another_debugger_is_left_alone(program):
    if shutil.which("gdb") is None:
        pytest.skip("no gdb")
    with running(program, 4, 100) as process:
        command = f"shell {sys.executable} -I {MAIN} findleaks {process.pid} 2>&1"
        done = subprocess.run(
            ["gdb", "-q", "-batch", "-nx", "-p", str(process.pid), "-ex", command],
            capture_output=True, text=True, timeout=120, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    if "ptrace: " in done.stderr:
        pytest.skip("gdb may not look at processes here")
    assert f"process {process.pid} may not be read" in done.stdout
    assert "no other debugger" in done.stdout


def test_a_copy_that_memory_can_not_hold_is_refused(program, monkeypatch):
    from terrace.debug import copying
    from terrace.errors import TerraceError

    monkeypatch.setattr(copying, "_TIMES_AS_MUCH", 1_000_000)
    with running(program, 4, 100) as process, pytest.raises(TerraceError, match="core file"):
        report("findleaks", process.pid)


def test_blocks_in_quarantine_are_no_leaks(program):
    with running(program, 5, 100, TERRACE_CHECK="1") as process:
        assert leaked(report("findleaks", process.pid))[0] == 5


def test_the_hardened_library_is_read_as_well(program):
    hardened = BUILD / "libterrace-hardened.so"
    if not hardened.exists():
        pytest.skip("build/release has no libterrace-hardened.so")
    with running(program, "busy", 8, 100, LD_PRELOAD=str(hardened)) as process:
        in_the_end("findleaks", process.pid, lambda lines: leaked(lines) == (8, 8 * 112))
        in_the_end("verify", process.pid, has_no_fault)


@pytest.mark.parametrize("how", [[], ["-static"], ["-no-pie"], ["-Wl,--gc-sections", "-s"]])
def test_a_program_that_terrace_is_linked_into_is_read_as_well(tmp_path, how):
    archive = BUILD / "libterrace.a"
    if not archive.exists():
        pytest.skip("build/release has no libterrace.a")
    try:
        linked = compiled(tmp_path, *how, str(archive), "-ldl")
    except subprocess.CalledProcessError as error:
        pytest.skip(error.stderr.decode()[-200:])
    with running(linked, 6, 100, LD_PRELOAD="") as process:
        assert leaked(report("findleaks", process.pid)) == (6, 6 * 112)


def test_the_core_file_of_an_aborted_process_tells_the_same(core):
    lines = report("findleaks", core)
    assert leaked(lines) == (9, 9 * 208)
    assert "nothing was stopped" in lines[-1]
    assert "no fault" in report("verify", core)[0]
    assert any(line.split()[:2] == ["208", "9"] for line in report("umastat", core))
    assert "is allocated, size class 208" in report("whatis", core, hex(first_address(lines)))[0]


def core_of_gcore(pid: int, directory: Path) -> Path:
    if shutil.which("gcore") is None:
        pytest.skip("no gcore")
    made = subprocess.run(
        ["gcore", "-o", str(directory / "core"), str(pid)], capture_output=True, check=False
    )
    if made.returncode != 0:
        pytest.skip("gcore may not look at processes here")
    return directory / f"core.{pid}"


def test_a_core_of_gcore_tells_the_same(program, tmp_path):
    with running(program, 12, 300) as process:
        core = core_of_gcore(process.pid, tmp_path)
        assert leaked(report("findleaks", core)) == leaked(report("findleaks", process.pid))


LOST_BY_THREADS = (20, 20 * 160)


def test_what_threads_left_below_their_stack_pointers_keeps_nothing(program, tmp_path):
    """Neither of a process nor of its core file, which says nothing of guards."""
    with running(program, "threads", 20, 160) as process:
        assert leaked(report("findleaks", process.pid)) == LOST_BY_THREADS
        core = core_of_gcore(process.pid, tmp_path)
    assert leaked(report("findleaks", core)) == LOST_BY_THREADS
    assert ": 20 blocks leaked, 3,200 bytes" in in_gdb("-ex", "umem findleaks", program, core)


def test_what_threads_left_keeps_nothing_in_a_core_of_the_kernel(program, tmp_path):
    core = aborted(program, tmp_path, "threads", 20, 160)
    assert leaked(report("findleaks", core)) == LOST_BY_THREADS


def test_umastat_counts_what_the_program_has(program):
    with running(program, 17, 100) as process:
        rows = {line.split()[0]: line.split() for line in report("umastat", process.pid) if line}
    assert rows["112"][1] == "17"
    assert rows["16"][1] == "1,000"
    assert rows["large"][1] == "1"
    assert {"core", "processor", "slabs", "spans"} <= set(rows)


def held_by_magazines(pid: int, size: int) -> list[int]:
    """Some addresses."""
    from terrace.debug.reports import open_target
    from terrace.debug.classes import Classes
    from terrace.debug.magazines import Magazines

    target = open_target(str(pid))
    classes = Classes(target.layout, target.memory)
    homes = {h for h, c in enumerate(classes.of_home) if c and classes.sizes[c] == size}
    magazines = Magazines(target.layout, target.memory, classes)
    held = [magazines.rounds(m).tolist()[0] for m in magazines if m.home in homes and m.count]
    assert held
    return held


def test_whatis_knows_allocated_freed_and_foreign(program):
    with running(program, 17, 100) as process:
        address = first_address(report("findleaks", process.pid))

        def whatis(at: int) -> str:
            return report("whatis", process.pid, hex(at))[0]

        assert whatis(address + 9) == (
            f"{address:#x}+0x9 is allocated, size class 112, slab {address & ~0xFFFF:#x}"
        )
        # The program has freed blocks of this size, on one core or on several, and never had most
        # of the slab's.
        seen = [whatis(at) for at in held_by_magazines(process.pid, 112)]
        assert all("is freed, in the " in s and " of s" in s for s in seen), seen
        last = (address & ~0xFFFF) + (1 << 16) - 3 * 112
        assert "is freed, in its slab" in whatis(last)
        assert "not mapped" in whatis(16)
        maps = Path(f"/proc/{process.pid}/maps").read_text(encoding="utf-8")
        stack = next(line for line in maps.splitlines() if line.endswith("[stack]"))
        assert "[stack]" in whatis(int(stack.partition("-")[0], 16) + 0x100)


def test_verify_finds_a_block_that_is_held_twice(core, tmp_path):
    from terrace.debug.reports import open_target
    from terrace.debug.classes import Classes
    from terrace.debug.magazines import Magazines

    target = open_target(str(core))
    layout, memory = target.layout, target.memory
    magazines = Magazines(layout, memory, Classes(layout, memory))
    victim = next(m for m in magazines.in_slots if m.count > 1)
    place = victim.address + 8 * layout.constant("magazine.first_place")
    load = next(s for s in target._loads if s["p_vaddr"] <= place < s["p_vaddr"] + s["p_filesz"])
    damaged = bytearray(core.read_bytes())
    at = load["p_offset"] + place - load["p_vaddr"]
    damaged[at : at + 8] = damaged[at + 8 : at + 16]
    copy = tmp_path / "damaged"
    copy.write_bytes(damaged)
    done = terrace("verify", copy)
    assert done.returncode == 1
    assert said("umem", copy, "verify") == (1, done.stdout.splitlines())
    assert said("umem", core, "verify")[0] == 0
    assert re.search(r"block 0x[0-9a-f]+ is in the .* and the ", done.stdout)


def test_gdb_on_a_core_file(program, core):
    commands = [f"umem {c}" for c in ("umastat", "findleaks", "verify", "whatis in_data")]
    shown = in_gdb(*(w for c in commands for w in ("-ex", c)), str(program), str(core))
    assert ": 9 blocks leaked, 1,872 bytes" in shown
    assert "no fault" in shown
    assert "is allocated, size class 1728" in shown


def test_gdb_on_a_live_process(program):
    shown = in_gdb(
        "-ex", f"set environment LD_PRELOAD {LIBRARY}", "-ex", "break wait_for_end",
        "-ex", "run 11 100", "-ex", "umem findleaks", "-ex", "umem verify", str(program),
    )  # fmt: skip
    if "Breakpoint 1, wait_for_end" not in shown:
        pytest.skip("gdb can start no program here")
    assert ": 11 blocks leaked, 1,232 bytes" in shown
    assert "no fault" in shown
