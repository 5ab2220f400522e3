# SPDX-License-Identifier: MIT OR Apache-2.0
"""The debugger on object caches and arenas, with the real libumem of build/release."""

import json
import mmap
import os
import re
import time

import pytest
from debugged import report, running
from debugged_umem import (
    LEAKED_BY_SIZE,
    LIBRARIES,
    addresses,
    needs_umem,
    rows,
    total_of,
    umem,
)
from terrace.cli import main
from terrace.report.cells import human_bytes

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
    assert shown["umem_oversize" if debug else "large"][1] == "1"
    # Objects of arenas are known one by one where each has a tag.
    assert shown.get("of_arena", ["", "0"])[1] == ("1" if debug else "0")
    assert total_of(lines) == 7 + LEAKED_BY_SIZE + 1 + bool(debug)


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


def test_what_is_larger_than_any_cache_has_a_caller_too(program, audited_core):
    variables = {"LD_PRELOAD": "", "UMEM_DEBUG": "default"}
    with running(program, "usual", 7, **variables) as process:
        of_process = report("findleaks", process.pid)
        users = umem(process.pid, "umausers", "-e")
    for lines in (of_process, report("findleaks", audited_core)):
        at = lines.index("umem_oversize: 1 buffer, the oldest allocated by")
        stack = [line.strip().partition("+")[0] for line in lines[at + 1 : at + 4]]
        assert stack == ["caches'block", "caches'leak", "caches'main"]
    assert "400000 bytes for 1 allocations with data size 400000:" in users


def test_cores_tell_the_same(core, audited_core):
    for each, of_arena in ((core, 0), (audited_core, 1)):
        lines = report("findleaks", each)
        assert total_of(lines) == 6 + LEAKED_BY_SIZE + 1 + of_arena
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


def test_top_has_caches_beside_size_classes(program, capsys):
    with running(program, "usual", 7, LD_PRELOAD="") as process:
        assert main(["top", "--once", "--json", "--seconds", "0.1", str(process.pid)]) == 0
    found = {c["name"]: c["in_use"] for c in json.loads(capsys.readouterr().out)["classes"]}
    assert (found["kept"], found["lost"]) == (300, 17)


def test_leaks_through_a_function_are_told_apart(program):
    variables = {"LD_PRELOAD": "", "UMEM_DEBUG": "default"}
    with running(program, "usual", 7, **variables) as process:
        through_leak = report("findleaks", process.pid, "--through", "leak")
        as_mdb_has_it = umem(process.pid, "findleaks", "make_arenas")
        nothing = report("findleaks", process.pid, "--through", "nothing")
    assert through_leak[1].startswith("lost ")
    assert not any("of_arena" in line for line in through_leak)
    assert as_mdb_has_it[1].split()[:2] == ["of_arena", "1"]
    assert nothing[0].endswith("no leaks with a known stack through nothing")


def test_firewalled_objects_are_looked_at_as_others(program):
    """Of the zone, 1 GiB of addresses, most pages are guards: where the kernel tells them."""
    variables = {"LD_PRELOAD": "", "UMEM_DEBUG": "firewall=100,audit"}
    with running(program, "usual", 7, **variables) as process:
        lines = report("findleaks", process.pid)
        live = addresses(umem(process.pid, "walk", "lost"))
        said = report("whatis", process.pid, f"{live[0]:#x}")
        record = umem(process.pid, "bufctl", f"{live[0]:x}", "-v")
        users = umem(process.pid, "umausers", "-e", "kept")
        verdict = umem(process.pid, "umem_verify")
    shown = rows(lines)
    assert (shown["lost"][1], shown["umem_oversize"][1], shown["of_arena"][1]) == ("7", "1", "1")
    assert total_of(lines) == 7 + LEAKED_BY_SIZE + 1 + 1
    assert len(live) == 17
    assert said[0] == f"{live[0]:#x} is allocated, cache lost"
    assert said[1].startswith("bufctl ")
    assert any("caches'object+" in line for line in said)
    assert "allocated from umem_firewall_va vmem arena" in said[-1]
    assert any("caches'object+" in line for line in record)
    assert users[0] == "60000 bytes for 300 allocations with data size 200:"
    assert not any("corrupt" in line for line in verdict)
    release = tuple(int(n) for n in re.findall(r"\d+", os.uname().release)[:2])
    if release >= (6, 15):
        copied = next(line for line in lines if "to copy" in line)
        assert "GiB;" not in copied.partition("to copy")[2]


@pytest.mark.parametrize("debug", ["firewall=100", "firewall=100,audit"])
def test_memory_by_size_behind_a_firewall_is_counted_and_looked_at(program, debug):
    """Also where nothing else looks at it: then its caches have classes without tags."""
    variables = {"LD_PRELOAD": LIBRARIES["umem_malloc"], "UMEM_DEBUG": debug}
    with running(program, "sizes", **variables) as process:
        leaks = report("findleaks", process.pid)
        usage = report("umastat", process.pid)
        live = addresses(umem(process.pid, "walk", "umem", "umem_alloc_1152"))
        of_malloc = addresses(umem(process.pid, "walk", "umem", "umem_alloc_4096"))
        told = report("whatis", process.pid, f"{of_malloc[0] + 100:#x}")
        untold = report("whatis", process.pid, f"{live[0]:#x}")
        leaked = addresses(umem(process.pid, "walk", "leakbuf"))
        asked = rows(umem(process.pid, "umem_malloc_info"))

    def first(lines: list[str], cache: str) -> list[str]:
        """Of malloc's heap; libumem.so, which the program is linked with, has one, too."""
        return next(line.split() for line in lines if line.startswith(f"{cache} "))

    # With tags of 16 bytes malloc's blocks have 3,016.
    for cache, size in (("umem_alloc_1152", "1,152"), ("umem_alloc_4096", "4,096")):
        assert first(leaks, cache)[1] == "3"
        assert first(usage, cache)[1:6] == [size, "8", "0", "0", "8"]
        memory = human_bytes(8 * max(4096, mmap.PAGESIZE))
        assert first(usage, cache)[6:] == [*memory.split(), "12", "0"]
    assert total_of(leaks) == 6
    assert len(live) == len(of_malloc) == 8
    assert told[0] == f"{of_malloc[0]:#x}+0x64 is allocated, cache umem_alloc_4096"
    assert told[1] == f"{of_malloc[0] + 16:#x} is what malloc has returned"
    assert not any("malloc" in line for line in untold[1:])
    # Shown is what the program got; the walker has objects.
    for cache, objects, tags in (("umem_alloc_4096", of_malloc, 16), ("umem_alloc_1152", live, 0)):
        shown = {int(word, 16) for word in first(leaks, cache) if word.startswith("0x")}
        assert shown == {object_ + tags for object_ in objects if object_ in leaked}
    assert asked["umem_alloc_4096"][3:6] == ["8", "3000", "24000"]
    assert "umem_alloc_1152" not in asked


def test_objects_of_arenas_are_looked_at_as_others(program):
    variables = {"LD_PRELOAD": "", "UMEM_DEBUG": "default"}
    with running(program, "usual", 7, **variables) as process:
        live = addresses(umem(process.pid, "walk", "umem", "of_arena"))
        free = addresses(umem(process.pid, "walk", "freemem", "of_arena"))
        said = report("whatis", process.pid, f"{free[0]:#x}")
        users = umem(process.pid, "umausers", "-e", "of_arena")
        verdict = umem(process.pid, "umem_verify", "of_arena")
    assert (len(live), len(free)) == (3, 2)
    assert said[0] == f"{free[0]:#x} is freed, and waits, cache of_arena"
    assert users[0] == "768 bytes for 3 allocations with data size 256:"
    assert verdict[-1].strip() == "clean"
