# SPDX-License-Identifier: MIT OR Apache-2.0
"""The commands of libumem's debugger, with the real libumem of build/release."""

import contextlib
import itertools
import re
from random import Random

import pytest
from debugged import aborted, compiled, in_gdb, report, running, said
from debugged_umem import LEAKED_BY_SIZE, UMEM_MALLOC, addresses, needs_umem, rows, total_of, umem
from terrace.errors import TerraceError

for module in ("numpy", "scipy", "elftools", "rich"):
    pytest.importorskip(module)
pytest_plugins = ("umem_fixtures",)
pytestmark = needs_umem


def test_status_names_logs_and_messages(program):
    variables = {"UMEM_DEBUG": "default,nonsense", "UMEM_LOGGING": "transaction=256k"}
    with running(program, "usual", 3, LD_PRELOAD="", **variables) as process:
        lines = umem(process.pid, "umem_status")
    text = "\n".join(lines)
    assert "Status:         ready and active" in text
    assert re.search(r"Concurrency: +\d+", text)
    assert re.search(r"transaction=\d+k contents \(inactive\) fail \(inactive\)", text)
    assert "nonsense" in text


def test_umem_cache_has_flags_and_sizes(program):
    with running(program, "usual", 3, LD_PRELOAD="", UMEM_DEBUG="guards") as process:
        every = umem(process.pid, "umem_cache")
        one = umem(process.pid, "umem_cache", "kept")
        by_address = umem(process.pid, "umem_cache", one[1].split()[0])
    assert every[0].split() == ["ADDR", "NAME", "FLAG", "CFLAG", "BUFSIZE", "BUFTOTL"]
    assert len(every) > 40  # those that serve umem_alloc(), too
    assert one[1].split()[1:5] == ["kept", "0006", "00000000", "200"]
    assert int(one[1].split()[5]) >= 350
    assert by_address == one


def test_verify_tells_damaged_objects(program):
    with running(program, "broken", LD_PRELOAD="", UMEM_DEBUG="default") as process:
        status, shown = said("umem", process.pid, "umem_verify")
        status_of_one, one = said("umem", process.pid, "umem_verify", "broken")
        whole = umem(process.pid, "umem_verify", "whole")
    assert (status, status_of_one) == (1, 1)
    verdicts = {line.split()[0]: " ".join(line.split()[2:]) for line in shown[1:]}
    assert verdicts["broken"] == "2 corrupt buffers"
    assert {v for name, v in verdicts.items() if name != "broken"} == {"clean"}
    assert one[0] == "Summary for cache 'broken'"
    modified = re.search(r"buffer ([0-9a-f]+) \(free\) seems corrupted, at ([0-9a-f]+)", one[1])
    beyond = re.search(r"\(allocated\) has a corrupt redzone signature", one[2])
    if modified is None:  # the other order of addresses
        modified = re.search(r"buffer ([0-9a-f]+) \(free\) seems corrupted, at (\w+)", one[2])
        beyond = re.search(r"\(allocated\) has a corrupt redzone signature", one[1])
    assert modified and beyond, one
    assert int(modified[2], 16) - int(modified[1], 16) == 24
    assert whole == ["Summary for cache 'whole'", "  clean"]


def test_verify_of_a_core_exits_with_1_when_objects_are_damaged(program, tmp_path):
    damaged = aborted(program, tmp_path, "broken", LD_PRELOAD="", UMEM_DEBUG="default")
    for words in [(), ("broken",)]:
        assert said("umem", damaged, "umem_verify", *words)[0] == 1
    assert said("umem", damaged, "umem_verify", "whole")[0] == 0


def test_objects_that_are_sound_are_clean(audited_core):
    verdicts = {line.split()[-1] for line in umem(audited_core, "umem_verify")[1:]}
    assert verdicts == {"clean"}


def test_users_are_grouped_by_stack(audited_core):
    lines = report("umausers", audited_core)
    assert lines[0] == "400000 bytes for 1 allocations with data size 400000:"
    assert lines[1].strip().startswith("caches'block+0x")
    of_objects = lines[lines.index("60000 bytes for 300 allocations with data size 200:") + 1]
    assert of_objects.strip().startswith("caches'object+0x")
    every = report("umausers", "-e", audited_core)
    assert "720 bytes for 6 allocations with data size 120:" in every
    pattern = r"[13]000 bytes for [13] allocations with data size 1000:"
    assert any(re.fullmatch(pattern, line) for line in every)
    each = report("umausers", "-e", "-f", audited_core, "lost")
    assert sum("cache lost" in line for line in each) == 16
    assert not any("cache kept" in line for line in each)


def test_a_record_tells_what_happened_last(program):
    with running(program, "usual", 5, LD_PRELOAD="", UMEM_DEBUG="default") as process:
        pid = process.pid
        objects = addresses(umem(pid, "walk", "umem", "kept"))
        records = addresses(umem(pid, "walk", "bufctl", "kept"))
        assert (len(objects), len(records)) == (300, 300)
        head, row, *stack = umem(pid, "bufctl", hex(records[0]), "-v")
        assert head.split() == [
            "ADDR", "BUFADDR", "TIMESTAMP", "THRD", "CALLER", "CACHE", "LASTLOG", "CONTENTS",
        ]  # fmt: skip
        assert int(row.split()[1], 16) in objects
        assert row.split()[3] == str(pid)
        assert row.split()[4].startswith("caches'object+0x")
        assert stack[0].strip() == row.split()[4]
        assert umem(pid, "bufctl", hex(objects[3]))[1].split()[1] == f"{objects[3]:x}"
        assert len(umem(pid, "bufctl", hex(records[0]), "-t", "1")) == 1
        allocated, freed = umem(pid, "allocdby", pid), umem(pid, "freedby", pid)
        assert len(allocated) - 1 == 300 + 10 + 5 + 5 + 3 + 3
        assert 1 + 2 <= len(freed) - 1 <= 50 + 2  # the others may be back in their slab
        assert any("caches'keep+0x" in line for line in freed)
        said = report("whatis", pid, hex(objects[3]))
        assert "is allocated, cache kept" in said[0]
        assert said[1].startswith("bufctl ")
        assert "caches'object+0x" in said[3]


def test_walkers(program):
    with running(program, "usual", 5, LD_PRELOAD="", UMEM_DEBUG="default") as process:
        pid = process.pid

        def walk(*words: object) -> list[int]:
            return addresses(umem(pid, "walk", *words))

        caches = walk("umem_cache")
        assert len(caches) == len(set(caches)) > 40
        lost = walk("lost")
        assert len(lost) == 15
        assert lost == walk("umem", "lost") == sorted(lost)
        leaked = walk("leakbuf")
        assert len(set(lost) & set(leaked)) == 5
        assert len(leaked) == 5 + LEAKED_BY_SIZE + 1 + 1
        assert set(walk("leak")) & set(walk("bufctl", "lost"))
        assert walk("freectl", "kept")
        assert set(walk("umem_hash", "kept")) == {
            *walk("bufctl", "kept"), *walk("freectl", "kept"),
        }  # fmt: skip
        assert not set(walk("freemem", "kept")) & set(walk("umem", "kept"))
        slabs = walk("umem_slab", "lost")
        assert all(any(s <= a < s + (1 << 16) for s in slabs) for a in lost)
        assert set(walk("umem_slab_partial", "lost")) == set(slabs)
        # Slots of threads have words of those caches only that the thread has used.
        assert len(walk("umem_cpu")) >= len(walk("umem_cpu_cache", "lost")) >= 1
        assert len(walk("bufctl_history", hex(walk("bufctl", "lost")[0]))) == 1
        assert walk("allocdby", pid)
        arenas, postfix = walk("vmem"), walk("vmem_postfix")
        names = [line.split()[1] for line in umem(pid, "vmem")[1:]]
        assert sorted(names) == ["memory", "numbers", "pieces", "umem_firewall_va"]
        assert len(arenas) == 4
        assert sorted(arenas) == sorted(postfix)
        numbers, pieces = (arenas[names.index(name)] for name in ("numbers", "pieces"))
        assert postfix.index(pieces) < postfix.index(numbers)
        kinds = ("vmem_alloc", "vmem_free", "vmem_span")
        segments = [walk(kind, "numbers") for kind in kinds]
        assert [len(s) for s in segments] == [2, 2, 1]
        assert sorted(itertools.chain(*segments)) == sorted(walk("vmem_seg", "numbers"))


def test_blocks_that_slots_keep_are_walked_by_size(program):
    with running(program, "usual", 5, LD_PRELOAD="") as process:
        kept = addresses(umem(process.pid, "walk", "umem_ptc_200"))
        of_slots = [
            addresses(umem(process.pid, "walk", "umem_ptc_200", i))
            for i in range(len(umem(process.pid, "walk", "umem_cpu")))
        ]
        line = next(x for x in report("umastat", process.pid) if x.startswith("kept "))
    assert len(kept) == int(line.split()[3])
    assert sorted(kept) == sorted(itertools.chain(*of_slots))


def test_arenas_and_their_segments(program):
    with running(program, "usual", 5, LD_PRELOAD="") as process:
        arenas = umem(process.pid, "vmem")
        segments = umem(process.pid, "vmem_seg", "numbers")
        free = umem(process.pid, "vmem_seg", "numbers", "-t", "free")
        said = report("whatis", process.pid, "0x10380")
    assert arenas[0].split() == ["ADDR", "NAME", "INUSE", "TOTAL", "SUCCEED", "FAIL"]
    by_name = {line.split()[1]: line for line in arenas[1:]}
    assert by_name["numbers"].split()[2:] == [str(0x700), str(0x100000), "3", "0"]
    assert by_name["pieces"].split()[2] == str(0x200)
    assert by_name["pieces"].index("pieces") == by_name["numbers"].index("numbers") + 2
    assert [line.split()[1] for line in segments[1:]] == ["SPAN", "FREE", "ALLC", "ALLC", "FREE"]
    assert segments[2].split()[2:] == ["10000", "10300", "300"]
    assert len(free) == 3
    assert "10300+0x80, (vmem_seg" in said[-1]
    assert "allocated from numbers vmem arena" in said[-1]


def test_pointers_are_found_where_they_are(program):
    with running(program, "usual", 5, LD_PRELOAD="") as process:
        first = addresses(umem(process.pid, "walk", "kept"))[-1]
        places = addresses(umem(process.pid, "ugrep", hex(first)))
        said = [report("whatis", process.pid, hex(place))[0] for place in places]
        assert umem(process.pid, "ugrep", "0x123456789abcdef1")[0].endswith(" is nowhere")
    # The list's head or another node of it.
    assert any("cache kept" in s or "caches, 0x" in s for s in said), said


def test_malloc_is_told_by_sizes(program):
    if not UMEM_MALLOC.exists():
        pytest.skip("build/release has no libumem_malloc.so")
    variables = {"LD_PRELOAD": str(UMEM_MALLOC), "UMEM_DEBUG": "guards"}
    with running(program, "many", 500, 1000, **variables) as process:
        tagged = umem(process.pid, "umem_malloc_info")
    with running(program, "many", 500, 1000, LD_PRELOAD=str(UMEM_MALLOC)) as process:
        plain = umem(process.pid, "umem_malloc_info")
        shares = umem(process.pid, "umem_malloc_dist")
    assert tagged[0].split()[:5] == ["CACHE", "BUFSZ", "MAXMAL", "BUFMALLC", "AVG_MAL"]
    by_size = rows(tagged)
    # calloc(500, 8), and 16 bytes of tags.
    size, largest, blocks, average, malloced = (int(n) for n in by_size["umem_alloc_4096"][1:6])
    assert (size, largest) == (4096, 4080)
    assert malloced >= 4000 * blocks >= 4000
    assert average == malloced // blocks
    assert rows(plain)["4096"][1:3] == ["4096", "4096"]
    assert re.search(r"^ *\d+ to 4096 +\|@+ *\| +\d+$", "\n".join(shares), re.MULTILINE)


def test_logs_are_read_newest_first(program):
    variables = {"UMEM_DEBUG": "default", "UMEM_LOGGING": "transaction=1m,slab"}
    with running(program, "usual", 5, LD_PRELOAD="", **variables) as process:
        pid = process.pid
        shown = umem(pid, "umalog")
        raw = umem(pid, "umem_log")
        assert raw[0].split() == ["CPU", "ADDR", "BUFADDR", "TIMESTAMP", "THREAD"]
        entries = addresses(umem(pid, "walk", "umem_log"))
        assert len(entries) == len(raw) - 1 >= 350 + 50 + 15 + 8
        assert shown[0].startswith("T-0.000000000  addr=")
        times = [float(line[2:].split()[0]) for line in shown if line.startswith("T-")]
        assert times == sorted(times)
        assert umem(pid, "umalog", "slab")[0].startswith("T-")
        freed = addresses(umem(pid, "walk", "freectl", "kept"))
        histories = [umem(pid, "bufctl", hex(each), "-h")[1:] for each in freed[-60:]]
        # What was freed had been allocated.
        assert any(len(h) == 2 for h in histories)
        assert total_of(report("findleaks", pid)) == 5 + LEAKED_BY_SIZE + 1 + 1


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["umausers"], "UMEM_DEBUG=audit"),
        (["umalog"], "UMEM_LOGGING=transaction"),
        (["bufctl", "10"], "is neither a bufctl nor an object"),
        (["umem_cache", "nobody"], "is no object cache"),
        (["vmem", "nobody"], "is no arena"),
        (["vmem_seg", "nobody"], "nobody is no arena, neither a name nor an address"),
        (["umastat", "kept"], "usage: umastat"),
        (["verify", "kept"], "usage: verify"),
        (["walk", "nobody"], "there is no walker nobody"),
        (["nothing"], "there is no command nothing"),
        (["umem_verify", "-x"], "usage: umem_verify"),
    ],
)
def test_what_makes_no_sense_is_one_line(core, words, expected):
    with pytest.raises(TerraceError, match=expected) as error:
        umem(core, *words)
    assert "\n" not in str(error.value)


def test_without_libumem_there_is_nothing_to_look_at(tmp_path):
    program = compiled(tmp_path)
    with running(program, 1, 100) as process:
        assert umem(process.pid, "umem_status") == ["Status:         not loaded"]
        with pytest.raises(TerraceError, match="no libumem"):
            umem(process.pid, "umem_cache")


COMMANDS = (
    "umastat", "findleaks", "verify", "umem_status", "umem_cache", "umem_verify", "umausers -e",
    "umalog", "vmem", "vmem_seg", "umem_malloc_info", "umem_malloc_dist", "walk umem",
    "walk bufctl", "walk umem_slab", "walk leak", "walk vmem_postfix", "allocdby 1",
)  # fmt: skip


@pytest.mark.parametrize("seed", range(4))
def test_damaged_memory_ends_in_a_line_not_in_a_traceback(audited_core, tmp_path, seed):
    """Words of caches, classes, arenas, records and magazines are replaced at random."""
    from terrace.debug.reports import open_target
    from terrace.debug.umem.arenas import ArenaReader
    from terrace.debug.umem.caches import CacheReader

    target = open_target(str(audited_core))
    layout, described = target.layout, target.umem
    places = [c.address for c in CacheReader(described, target.memory)]
    places += [a.address for a in ArenaReader(described, target.memory)]
    places += [target.memory.number(layout.address("object_classes") + i) for i in (0, 8)]
    places += [layout.heap + layout.offset(f"{level}.objects") for level in ("processors", "nodes")]
    places += addresses(umem(audited_core, "walk", "vmem_seg"))
    places += addresses(umem(audited_core, "walk", "umem_hash"))
    random = Random(seed)
    damaged = bytearray(audited_core.read_bytes())
    for place in random.sample([p for p in places if p], 12):
        load = next(
            s for s in target._loads if s["p_vaddr"] <= place < s["p_vaddr"] + s["p_filesz"]
        )
        at = load["p_offset"] + place - load["p_vaddr"] + 8 * random.randrange(24)
        value = random.choice((0, 1, random.getrandbits(64), place, place + 64, 1 << 63))
        damaged[at : at + 8] = value.to_bytes(8, "little")
    copy = tmp_path / "damaged"
    copy.write_bytes(damaged)
    for words in COMMANDS:
        with contextlib.suppress(TerraceError):
            said("umem", copy, *words.split())


def test_gdb_has_the_same_commands(program, audited_core):
    words = ("umem_cache lost", "umem_verify", "walk lost", "vmem", "whatis list", "nothing")
    shown = in_gdb(*(w for c in words for w in ("-ex", f"umem {c}")), program, audited_core)
    assert re.search(r"[0-9a-f]+ +lost +000f +00000000 +120 ", shown)
    assert "clean" in shown
    assert len(re.findall(r"^[0-9a-f]{8,16}$", shown, re.MULTILINE)) == 16
    assert "numbers" in shown
    assert "is allocated, cache kept" in shown


@pytest.mark.parametrize("debug", ["", "default"])
def test_large_objects_are_their_caches(program, debug):
    """Under UMEM_DEBUG, where each has a tag; without it they are large blocks."""
    with running(program, "large", LD_PRELOAD="", UMEM_DEBUG=debug) as process:
        leaks = report("findleaks", process.pid)
        usage = rows(report("umastat", process.pid))["vast"]
        verdict = umem(process.pid, "umem_verify")
        if debug:
            live = addresses(umem(process.pid, "walk", "umem", "vast"))
            free = addresses(umem(process.pid, "walk", "freemem", "vast"))
            told = report("whatis", process.pid, f"{live[0]:#x}")
            users = umem(process.pid, "umausers", "vast")
    assert usage[1:3] == ["300,000", "2"]
    assert total_of(leaks) == 1
    if not debug:
        assert rows(leaks)["large"][1] == "1"
        return
    assert (len(live), len(free)) == (2, 1)
    assert rows(leaks)["vast"][1] == "1"
    assert rows(verdict)["vast"][2] == "clean"
    assert "vast" in told[0]
    assert any(line.startswith("bufctl ") for line in told)
    assert users[0].endswith("with data size 300000:")
