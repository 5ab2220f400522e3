# SPDX-License-Identifier: MIT OR Apache-2.0
"""The debugger on object caches and arenas, with the real libumem of build/release."""

from __future__ import annotations

import os
import re
import time

import pytest
from debugged import report, running
from debugged_umem import LEAKED_BY_SIZE, LIBRARIES, needs_umem, rows, total_of, umem

for module in ("numpy", "scipy", "elftools", "rich"):
    pytest.importorskip(module)
pytest_plugins = ("umem_fixtures",)
pytestmark = needs_umem


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("rung", ["mm_cid", "getcpu", "thread"])
def test_umastat_has_a_row_for_each_cache_and_each_arena(program, library, rung):
    variables = {"LD_PRELOAD": LIBRARIES[library], "TERRACE_RUNG": rung}
    with running(program, "usual", 7, **variables) as process:
        lines = report("umastat", process.pid)
    shown = rows(lines)
    assert shown["kept"][:3] == ["kept", "200", "300"]
    assert shown["lost"][:3] == ["lost", "120", "17"]
    assert shown["kept"][-2:] == ["350", "0"]
    in_use, in_slots, in_depots, total = (int(n) for n in shown["kept"][2:6])
    assert in_use + in_slots + in_depots <= total
    assert shown["of_arena"][:3] == ["of_arena", "256", "3"]
    assert shown["numbers"][-2:] == ["3", "0"]
    assert any(line.startswith("  pieces ") for line in lines)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("debug", ["", "default", "guards"])
def test_objects_that_nothing_reaches_are_leaked(program, library, debug):
    variables = {"LD_PRELOAD": LIBRARIES[library], "UMEM_DEBUG": debug}
    with running(program, "usual", 7, **variables) as process:
        lines = report("findleaks", process.pid)
        # Under UMEM_DEBUG libumem.so, which the program is linked with, has caches of its own.
        assert not [line for line in report("verify", process.pid) if " faults in " in line]
    shown = rows(lines)
    assert ["lost", "7", "840"] in [line.split()[:3] for line in lines]
    assert "kept" not in shown
    assert shown["large"][1] == "1"
    assert total_of(lines) == 7 + LEAKED_BY_SIZE + 1


def test_a_stripped_library_is_read_as_well(program, stripped):
    with running(program, "usual", 5, LD_PRELOAD=stripped) as process:
        assert total_of(report("findleaks", process.pid)) == 5 + LEAKED_BY_SIZE + 1
        assert rows(report("umastat", process.pid))["lost"][2] == "15"


def test_audited_leaks_come_with_who_allocated_them(program):
    variables = {"LD_PRELOAD": "", "UMEM_DEBUG": "default"}
    with running(program, "usual", 7, **variables) as process:
        lines = report("findleaks", process.pid)
    at = next(i for i, line in enumerate(lines) if line.startswith("CACHE "))
    assert lines[at].split() == ["CACHE", "LEAKED", "BUFCTL", "CALLER"]
    cache, leaked, record, caller = lines[at + 1].split()
    assert (cache, leaked) == ("lost", "7")
    assert int(record, 16) > 0
    assert caller.startswith("caches'object+0x")
    stack = lines[lines.index("lost: 7 buffers, the oldest allocated by") + 1 :]
    assert [line.strip().partition("+")[0] for line in stack[:3]] == [
        "caches'object", "caches'leak", "caches'main",
    ]  # fmt: skip


def test_cores_tell_the_same(core, audited_core):
    for each in (core, audited_core):
        lines = report("findleaks", each)
        assert total_of(lines) == 6 + LEAKED_BY_SIZE + 1
        assert rows(report("umastat", each))["lost"][2] == "16"
        assert "no fault" in report("verify", each)[0]


def test_thousands_of_caches_are_shown_in_no_time(program):
    """No bound on the time: what it takes is printed, and docs/guide/debugging.md has it."""
    with running(program, "many", 5000, 1_000_000, LD_PRELOAD="") as process:
        began = time.monotonic()
        lines = report("umastat", process.pid)
        print(f"umastat of 5,000 caches: {time.monotonic() - began:.2f} s")
    shown = rows(lines)
    assert shown["Total"][1] == "1,000,000"
    assert shown["cache_4999"][2] == "200"


def test_top_has_caches_beside_size_classes(program):
    with running(program, "usual", 7, LD_PRELOAD="") as process:
        shown = report("top", process.pid, "--count", 2, "--seconds", 0.1)
    by_name = {line.split()[0]: line.split() for line in shown if line.split()}
    assert by_name["kept"][3] == "300"
    assert by_name["lost"][3] == "17"


def test_guards_of_firewalled_objects_are_not_copied(program):
    """Of the zone, 1 GiB of addresses, most pages are guards: where the kernel tells them."""
    variables = {"LD_PRELOAD": "", "UMEM_DEBUG": "firewall=100,guards"}
    with running(program, "usual", 7, **variables) as process:
        lines = report("findleaks", process.pid)
        found = umem(process.pid, "vmem_seg", "umem_firewall_va", "-t", "alloc")[-1].split()
        said = report("whatis", process.pid, found[2])
    assert lines[0].endswith("no leaks")
    assert "allocated from umem_firewall_va vmem arena" in said[-1]
    release = tuple(int(n) for n in re.findall(r"\d+", os.uname().release)[:2])
    if release >= (6, 15):
        assert "GiB" not in lines[1]
