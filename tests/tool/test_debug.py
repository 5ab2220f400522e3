# SPDX-License-Identifier: MIT OR Apache-2.0
"""The debugger's parts: what is a root, what a graph reaches, how descriptors are refused."""

import os
import struct
import sys
from types import SimpleNamespace

import pytest

# ruff: noqa: E402 - what follows needs these
for module in ("numpy", "scipy", "elftools", "rich"):
    pytest.importorskip(module)

import numpy as np
from terrace.debug import commands, copying, layout, reach, reports, roots, symbols
from terrace.debug.live import LiveMemory, Pages, read_maps
from terrace.debug.memory import Copy, Mapping, Segment, Thread, UnreadableError
from terrace.debug.target import Target
from terrace.errors import TerraceError
from terrace.report.text import table

MAPS = """\
55d0c0000000-55d0c0001000 r--p 00000000 fe:01 12   /usr/bin/a program
55d0c0001000-55d0c0002000 r-xp 00001000 fe:01 12   /usr/bin/a program
55d0c0002000-55d0c0003000 r--p 00002000 fe:01 12   /usr/bin/a program
55d0c0003000-55d0c0004000 rw-p 00003000 fe:01 12   /usr/bin/a program
7f0000000000-7f0000001000 ---p 00000000 00:00 0
7f0000001000-7f0000101000 rw-p 00000000 00:00 0
7f0000200000-7f0000201000 rw-s 00000000 00:05 77   /dev/dri/card0
7f0000300000-7f0000301000 rw-s 00000000 00:01 78   /dev/zero (deleted)
7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0    [stack]
7ffc00030000-7ffc00032000 r--p 00000000 00:00 0    [vvar]
"""


def thread(sp: int, tp: int = 0) -> Thread:
    return Thread(1, 0, sp, np.zeros(0, np.uint64), tp)


def test_maps_are_read_with_spaces_and_deleted_files():
    mappings = read_maps(MAPS)
    assert mappings[0] == Mapping(0x55D0C0000000, 0x55D0C0001000, "r--p", 0, "/usr/bin/a program")
    assert mappings[3].offset == 0x3000
    assert mappings[7].path == "/dev/zero"
    assert not mappings[7].is_file


def test_roots_are_data_anonymous_memory_and_what_was_relocated():
    starts = [start for start, _ in roots.readable_data(read_maps(MAPS))]
    assert starts == [
        0x55D0C0002000,  # before the writable data of the same file: relocated, then protected
        0x55D0C0003000,
        0x7F0000001000,
        0x7F0000300000,
        0x7FFC00000000,
    ]


def test_below_the_stack_pointer_nothing_counts_where_the_stack_is_known():
    mappings = read_maps(MAPS)
    main, other, in_data = 0x7FFC00010000, 0x7F0000081008, 0x55D0C0003800
    # Two stacks of libc's, the second with its guard before the mapping, which is the first's.
    tps = [0x7F00000FF6C0, 0x7F000007F6C0]
    described = [(0x7F0000081000, 0x7F0000100000), (0x7F0000000000, 0x7F0000080000)]
    words = np.zeros(0x100000 // 8, np.uint64)
    for tp, (begins, ends) in zip(tps, described, strict=True):
        at = (tp - 0x7F0000001000) // 8
        words[at + 210 : at + 212] = begins, ends - begins
        words[at + 2 : at + 6] = tp, 0, tp + 0x310, (1 << 64) - 32  # what else is there
    memory = Copy([Segment(0x7F0000001000, words.view(np.uint8))])
    second = 0x7F0000011000
    threads = [thread(main), thread(other, tps[0]), thread(second, tps[1])]
    elsewhere = [thread(in_data, tps[0]), thread(5), thread(second, tps[0]), thread(second)]
    assert roots.unused_stacks(memory, mappings, threads) == [
        (0x7FFC00000000, main - roots.RED_ZONE),
        (0x7F0000081000, max(0x7F0000081000, other - 8 - roots.RED_ZONE)),
        (0x7F0000001000, second - roots.RED_ZONE),
    ]
    assert not roots.unused_stacks(memory, mappings, elsewhere)


@pytest.mark.parametrize(
    ("ranges", "holes", "rest"),
    [
        ([(0, 10)], [], [(0, 10)]),
        ([(0, 10)], [(0, 10)], []),
        ([(0, 10)], [(3, 5), (7, 8)], [(0, 3), (5, 7), (8, 10)]),
        ([(0, 10), (20, 30)], [(5, 25)], [(0, 5), (25, 30)]),
        ([(10, 20)], [(0, 12), (11, 13), (18, 40)], [(13, 18)]),
        ([(10, 20)], [(0, 30)], []),
        ([(10, 20)], [(0, 15), (2, 3)], [(15, 20)]),
        ([(10, 20)], [(12, 12)], [(10, 20)]),
    ],
)
def test_holes_are_taken_out_of_ranges(ranges, holes, rest):
    assert roots.without(ranges, holes) == rest


def graph_of(edges: list[tuple[int, int]]) -> reach.Graph:
    pairs = np.array(sorted(edges), np.int32).reshape(-1, 2)
    return reach.Graph(pairs[:, 0], pairs[:, 1])


def test_reachable_follows_pointers_and_cycles_alone_are_lost():
    allocated = np.array([True, True, False, True, True, True, True])
    heap = SimpleNamespace(allocated=allocated, total=7)
    graph = graph_of([(0, 1), (1, 3), (4, 5), (5, 4), (6, 0)])
    found = reach.reachable(heap, graph, np.array([0], np.int64))
    assert np.flatnonzero(found).tolist() == [0, 1, 3]


def test_without_roots_and_without_blocks_nothing_is_reachable():
    nothing = np.zeros(0, np.int64)
    heap = SimpleNamespace(allocated=np.array([True, False]), total=2)
    assert not reach.reachable(heap, graph_of([]), nothing).any()
    heap = SimpleNamespace(allocated=np.zeros(0, np.bool_), total=0)
    assert not reach.reachable(heap, graph_of([]), nothing).any()


def test_a_list_of_a_million_blocks_is_no_matter_of_depth():
    n = 1_000_000
    heap = SimpleNamespace(allocated=np.ones(n, np.bool_), total=n)
    order = np.random.default_rng(1).permutation(n).astype(np.int32)
    source, target = order[:-1], order[1:]
    by_source = np.argsort(source)
    graph = reach.Graph(source[by_source], target[by_source])
    assert reach.reachable(heap, graph, order[:1].astype(np.int64)).all()
    assert reach.reachable(heap, graph, order[n // 2 : n // 2 + 1].astype(np.int64)).sum() == n // 2


def test_a_table_of_more_bytes_than_can_be_is_not_made_of_zeroes():
    copy = Copy([Segment(4096, np.ones(4096, np.uint8))])
    assert copy.sparse(0, 12288).sum() == 4096
    for size in (1 << 36, 1 << 62):
        with pytest.raises(UnreadableError):
            copy.sparse(0, size)


def test_a_copy_is_read_across_segments_and_gaps_are_zero():
    first, second = np.full(8, 1, np.uint8), np.full(8, 2, np.uint8)
    copy = Copy([Segment(108, second), Segment(100, first)])
    assert copy.read(104, 8) == b"\1\1\1\1\2\2\2\2"
    with pytest.raises(UnreadableError):
        copy.read(112, 8)
    assert copy.sparse(112, 8).tobytes() == b"\2\2\2\2\0\0\0\0"


def descriptor(magic: bytes = b"terrace-debug", version: int = 1) -> Copy:
    field = struct.pack("<28s3I", b"heap.ready", 8, 1, 1)
    address = struct.pack("<24sQ", b"heap", 4096)
    header = struct.pack("<16s6I", magic, version, 40, len(address), 1, len(field), 1)
    raw = np.frombuffer(header + address + field, np.uint8)
    heap = np.zeros(16, np.uint8)
    heap[8] = 1
    return Copy([Segment(0, raw), Segment(4096, heap)])


def test_descriptors_are_read_by_name():
    memory = descriptor()
    read = layout.Layout.__new__(layout.Layout)
    with pytest.raises(TerraceError, match="does not describe version"):
        layout.Layout(memory, 0)
    read._addresses, read._fields = {"heap": 4096}, {"heap.ready": layout.Field(8, 1, 1)}
    read.heap = 4096
    assert read.is_ready(memory)
    with pytest.raises(TerraceError, match=r"does not describe heap\.unready"):
        read.of_heap(memory, "heap.unready")


@pytest.mark.parametrize(("what", "said"), [({"version": 2}, "version 2"), ({"magic": b"x"}, "no")])
def test_descriptors_of_another_kind_or_version_are_refused(what, said):
    with pytest.raises(TerraceError, match=said):
        layout.Layout(descriptor(**what), 0)


def test_addresses_are_hexadecimal_with_or_without_0x():
    assert commands.parse_address("0x10") == commands.parse_address("10") == 16
    with pytest.raises(TerraceError, match="hexadecimal"):
        commands.parse_address("here")


def test_a_number_is_a_process_and_a_name_a_file():
    with pytest.raises(TerraceError, match="there is no process 4194303"):
        reports.open_target("4194303")
    with pytest.raises(TerraceError, match="No such file"):
        reports.open_target("./4194303")


def test_symbols_name_addresses_and_files_without_them_say_where():
    assert symbols.name_of(__file__, 0x10) == "test_debug.py+0x10"
    assert symbols.name_of(sys.executable, 1 << 60).endswith("+0x1000000000000000")


def test_tables_have_columns_of_the_widest_cell():
    assert table("name  >n", [["a", "1,000"], ["long name", "2"]]) == [
        "name           n",
        "a          1,000",
        "long name      2",
    ]


class FakeTarget(Target):
    """A thread's stack, and where Terrace and libc are."""

    library = "/lib/libterrace.so"
    places = (
        Mapping(0x1000, 0x2000, "r-xp", 0, library),
        Mapping(0x5000, 0x6000, "r-xp", 0, "/lib/libc.so.6"),
        Mapping(0x7000, 0x8000, "r-xp", 0, "/bin/program"),
    )

    def __init__(self, stack: list[int]) -> None:
        self.memory = Copy([Segment(0x9000, np.array(stack, np.uint64).view(np.uint8))])

    def mappings(self):
        return list(self.places)

    def capture(self, select):
        raise NotImplementedError

    def descriptors(self):
        return []


@pytest.mark.parametrize(
    ("pc", "stack", "program", "inside"),
    [
        (0x1800, [0, 0, 0], "/bin/program", True),
        (0x5800, [0x1810, 0, 0], "/bin/program", True),  # memcpy, which Terrace has called
        (0x5800, [0x7810, 0, 0x1810], "/bin/program", False),  # a function has left it there
        (0x7800, [0x1810, 0, 0], "/bin/program", False),
        (0x1800, [0, 0, 0], "/lib/libterrace.so", False),  # linked: it can not be told
    ],
)
def test_which_threads_are_within_terrace(pc, stack, program, inside):
    target = FakeTarget(stack)
    one = Thread(1, pc, 0x9000, np.zeros(0, np.uint64))
    assert target.inside(target.mappings(), [one], program) == ([one] if inside else [])


def test_thousands_of_ranges_are_read_by_a_few_calls(monkeypatch) -> None:
    calls: list[int] = []

    class Counting:
        def process_vm_readv(self, *arguments: object) -> int:
            calls.append(1)
            return real.process_vm_readv(*arguments)

    real = copying._libc
    monkeypatch.setattr(copying, "_libc", Counting())
    numbers = np.arange(3000, dtype=np.uint64)
    found = LiveMemory(os.getpid(), Pages(os.getpid())).at_once(
        [(int(numbers.ctypes.data) + 8 * i, 8) for i in range(3000)]
    )
    assert b"".join(found) == numbers.tobytes() and len(calls) == 3
