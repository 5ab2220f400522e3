# SPDX-License-Identifier: MIT OR Apache-2.0
"""The table of samples as a recorded one has it, and names of addresses in a real object."""

import math
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

for module in ("numpy", "elftools", "rich", "google.protobuf"):
    pytest.importorskip(module)

# ruff: noqa: E402 - what follows needs these
import numpy as np
from elftools.elf.elffile import ELFFile
from terrace.debug.layout import Layout
from terrace.debug.memory import Copy, Mapping, Memory, Segment
from terrace.debug.sampled import symbolizer as symbolizer_module
from terrace.debug.sampled import table as sampled
from terrace.debug.sampled.images import Images, build_id
from terrace.debug.sampled.known_stacks import KnownStacks
from terrace.debug.sampled.stacks import Reader
from terrace.debug.sampled.symbolizer import Symbolizer, demangled
from terrace.debug.sampled.table import Table
from terrace.debug.target import Capture, Found, Target
from terrace.errors import TerraceError
from terrace.profile.collect import profile_of
from terrace.profile.watch import Watch

DESCRIPTOR, PROFILE, CHUNK = 0x1000, 0x8000, 0x20000
PER_CHUNK, CHUNKS = 4, 2

PROFILE_FIELDS = {
    "period": (0, 8, 1), "mode": (8, 8, 1), "chunks": (16, 8, CHUNKS), "copies": (32, 8, CHUNKS),
    "used": (48, 4, 1), "taken": (56, 8, 1), "dropped": (64, 8, 1), "lost": (72, 8, 1),
    "mark": (80, 8, 1), "per_chunk": (PER_CHUNK, 0, 0),
}  # fmt: skip
SAMPLE_FIELDS = {
    "address": (0, 8, 1), "size": (8, 8, 1), "weighed": (16, 8, 1), "period": (24, 8, 1),
    "time": (32, 8, 1), "tid": (40, 4, 1), "version": (44, 4, 1), "state": (48, 4, 1),
    "next": (52, 4, 1), "born": (56, 8, 1), "died": (64, 8, 1), "depth": (72, 2, 1),
    "has_copy": (74, 2, 1), "pcs": (80, 8, 6),
}  # fmt: skip
SAMPLE = 128
PERIOD = 1000


def descriptor(with_profile: bool = True) -> bytes:
    addresses = {"heap": 0x7000, "version": 0x7800, "profile": PROFILE}
    fields = {"profile": (0, 96, 1), "sample": (0, SAMPLE, 1), "stack_copy": (0, 8192, 1)}
    fields |= {f"profile.{name}": field for name, field in PROFILE_FIELDS.items()}
    fields |= {f"sample.{name}": field for name, field in SAMPLE_FIELDS.items()}
    if not with_profile:
        addresses.pop("profile")
        fields = {}
    header = struct.pack("<16s6I", b"terrace-debug", 1, 40, 32, len(addresses), 40, len(fields))
    words = [struct.pack("<24sQ", name.encode(), at) for name, at in addresses.items()]
    words += [struct.pack("<28s3I", name.encode(), *field) for name, field in fields.items()]
    return b"".join((header, *words))


def record(**values: int | list[int]) -> bytes:
    raw = bytearray(SAMPLE)
    given = {"size": 100, "weighed": 112, "period": PERIOD, "version": 2, "state": 1, **values}
    for name, value in given.items():
        offset, size, _ = SAMPLE_FIELDS[name]
        for i, number in enumerate(value if isinstance(value, list) else [value]):
            raw[offset + i * size : offset + (i + 1) * size] = number.to_bytes(size, "little")
    return bytes(raw)


def memory(records: list[bytes], mark: int = 3, **more: int) -> Copy:
    profile = bytearray(96)
    chunks = [CHUNK + i * PER_CHUNK * SAMPLE for i in range(-(-len(records) // PER_CHUNK))]
    numbers = {"period": PERIOD, "used": len(records), "taken": 9, "mark": mark, **more}
    for name, value in numbers.items():
        offset, size, _ = PROFILE_FIELDS[name]
        profile[offset : offset + size] = value.to_bytes(size, "little")
    profile[16 : 16 + 8 * len(chunks)] = struct.pack(f"<{len(chunks)}Q", *chunks)
    table = b"".join(records).ljust(PER_CHUNK * CHUNKS * SAMPLE, b"\0")
    parts = ((DESCRIPTOR, descriptor()), (PROFILE, bytes(profile)), (CHUNK, table))
    return Copy([Segment(at, np.frombuffer(raw, np.uint8)) for at, raw in parts])


class Recorded(Target):
    """A process of which only this is known."""

    title = "process 7 (recorded)"

    def __init__(self, copy: Copy, mappings: list[Mapping] | None = None) -> None:
        self.memory = copy
        self._mappings = mappings or []
        self.heaps = [Found(Layout(copy, DESCRIPTOR), None, Mapping(0, 1, "r--p", 0, "/shop"))]

    def mappings(self) -> list[Mapping]:
        return self._mappings

    def capture(self, *_: object) -> Capture:
        raise NotImplementedError

    def descriptors(self) -> list:
        raise NotImplementedError


RECORDS = [
    record(address=0, state=0),  # the first is never used
    record(address=0x100, pcs=[1, 2, 3], depth=3, tid=7, time=5),
    record(address=0x200, born=3),  # not live yet at the peak
    record(address=0x300, state=2, died=3),  # freed since the peak
    record(address=0x400, state=2, died=2),  # freed since an earlier one
    record(address=0x500, version=3),  # half written
    record(address=0x600, size=1 << 20, weighed=1 << 20),
]


def test_samples_stand_for_what_is_live_and_what_was_at_the_peak() -> None:
    copy = memory(RECORDS)
    found = [s for s in Table(Layout(copy, DESCRIPTOR), copy).samples() if s.address]
    assert [(s.address, s.is_live, s.at_peak) for s in found] == [
        (0x100, True, True), (0x200, True, False), (0x300, False, True), (0x400, False, False),
        (0x600, True, True),
    ]  # fmt: skip
    assert found[0].pcs == (1, 2, 3)
    assert found[0].weight == pytest.approx(1 / (1 - math.exp(-0.112)))
    assert found[-1].weight == 1


class Moving(Memory):
    """A block is freed and another one taken, in the other of two records, between any two reads."""

    changes = True

    _reads = 0

    def at_once(self, ranges: list[tuple[int, int]]) -> list[bytes]:
        self._reads += 1
        states = (1, 0) if self._reads % 2 else (0, 1)
        rows = [record(address=1, state=state, version=2 * self._reads) for state in states]
        now = memory(rows)
        return [now.read(address, size) for address, size in ranges]

    def read(self, address: int, size: int) -> bytes:
        return self.at_once([(address, size)])[0]


def test_what_changes_meanwhile_is_of_one_moment() -> None:
    moving = Moving()
    assert sum(s.is_live for s in Table(Layout(moving, DESCRIPTOR), moving).samples()) == 1


def test_a_profile_sums_the_weights() -> None:
    reader = Reader(Recorded(memory(RECORDS, lost=2)))
    weight = 1 / (1 - math.exp(-0.112))
    live = profile_of(reader, reader.samples())
    assert live.total.bytes == pytest.approx(2 * weight * 100 + (1 << 20))
    assert live.total.objects == pytest.approx(2 * weight + 1)
    assert live.notes == ["2 samples did not fit into the table: a longer period loses none"]
    peak = profile_of(reader, reader.samples(), peak=True)
    assert peak.samples == 3 and peak.what == "in use at the peak"


def test_only_what_is_new_counts_while_one_looks() -> None:
    reader = Reader(Recorded(memory(RECORDS[:2])))
    watch = Watch(lambda: reader, reader)
    # A block was freed; its record stood for two others since, and for one that is still there.
    again = record(address=0x110, time=9, version=14)
    later = Reader(Recorded(memory([RECORDS[0], again, RECORDS[2]], taken=17)))
    there, allocated = watch.stop(later)
    assert sorted(s.address for s in there.values()) == [0x110, 0x200]
    weight = 1 / (1 - math.exp(-0.112))
    found = {s.address: s.weight / weight for s in allocated.values()}
    # Three of one and one of the other were seen, of the eight that the library has counted.
    assert found == {0x110: pytest.approx(6), 0x200: pytest.approx(2)}


def test_a_stack_that_was_unwound_is_known_by_its_return_addresses() -> None:
    known = KnownStacks()
    data = struct.pack("<6Q", 1, 0x401000, 2, 0x402000, 3, 4)
    assert known.find(0x400000, data) is None
    known.add(0x400000, 0x7000, [(0x7010, 0x401000), (0x7020, 0x402000)])
    assert known.find(0x400000, data) == (0x401000, 0x402000)
    assert known.find(0x400000, struct.pack("<6Q", 9, 0x401000, 9, 0x402000, 9, 9)) is not None
    assert known.find(0x400000, struct.pack("<6Q", 1, 0x401000, 2, 0x403000, 3, 4)) is None
    assert known.find(0x500000, data) is None
    # The first function's frame has another size in another call: its place tells nothing now.
    known.add(0x400000, 0x7000, [(0x7018, 0x401000)])
    assert known.find(0x400000, data) is None


def test_an_older_library_and_one_that_does_not_sample_are_named() -> None:
    raw = np.frombuffer(descriptor(with_profile=False), np.uint8)
    old = Copy([Segment(DESCRIPTOR, raw)])
    with pytest.raises(TerraceError, match="has no profiler"):
        Table(Layout(old, DESCRIPTOR), old)
    with pytest.raises(TerraceError, match="TERRACE_PROFILE=524288"):
        Reader(Recorded(memory([], period=0, taken=0))).expect_samples()


SOURCE = """
#include <stdlib.h>
void *volatile kept;
static inline __attribute__((always_inline)) void inner(int n) {
  kept = malloc(n);
  kept = kept;
}
void outer(int n) { inner(n); kept = 0; }
"""


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    directory = tmp_path_factory.mktemp("object")
    source = directory / "shop.c"
    source.write_text(SOURCE, encoding="utf-8")
    path = directory / "shop.so"
    options = ["-g", "-O1", "-fPIC", "-shared", "-Wl,--build-id=0x0123456789abcdef"]
    subprocess.run([compiler, *options, "-o", path, source], check=True)
    return path


def images(path: Path, base: int = 0x7F0000000000) -> tuple[Images, int, int]:
    """As mapped at an address; where outer() begins and ends."""
    with path.open("rb") as file:
        elf = ELFFile(file)
        symbol = next(s for s in elf.get_section_by_name(".symtab").iter_symbols()
                      if s.name == "outer")  # fmt: skip
    raw = np.frombuffer(path.read_bytes(), np.uint8)
    size = -(-len(raw) // 4096) * 4096
    mappings = [Mapping(base, base + size, "r-xp", 0, str(path))]
    copy = Copy([Segment(base, raw)])
    assert build_id(copy, base).hex() == "0123456789abcdef"
    start = base + symbol["st_value"]
    return Images(mappings, copy), start, start + symbol["st_size"]


def test_inlined_functions_and_lines_are_named(shared: Path) -> None:
    pytest.importorskip("drgn")
    found, start, end = images(shared)
    places = Symbolizer(found).locations(set(range(start + 1, end)))
    within = [place for place in places.values() if len(place.lines) == 2]
    assert within
    inner, outer = within[0].lines
    assert (inner.function, inner.place) == ("inner", "shop.c:5")
    assert (outer.function, outer.place) == ("outer", "shop.c:8")
    assert within[0].region is not None and within[0].region.build_id == "0123456789abcdef"


def test_without_drgn_functions_are_named(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(symbolizer_module, "drgn", None)
    found, start, _ = images(shared)
    places = Symbolizer(found).locations({start + 4, start - 0x7E0000000000})
    assert [line.function for line in places[start + 4].lines] == ["outer"]
    assert places[start - 0x7E0000000000].lines[0].function.startswith("0x")


def test_frame_pointers_are_followed_within_a_copy() -> None:
    start, above = 0x7000, 0x20000
    words = [0, 0, 0x7030, 0x401000, 0, 0, 0x7050, 0x402000, 0, 0, above, 0x403000]

    def followed(words: list[int]) -> tuple[int, ...]:
        data = struct.pack(f"<{len(words)}Q", *words)
        return sampled.Copy(0, (start,) * 16, data, start + 16).followed()

    assert followed(words) == (0x401000, 0x402000, 0x403000)
    assert followed(words[:11]) == (0x401000, 0x402000)  # half of a frame
    words[6] = start + 16  # a loop
    assert followed(words) == (0x401000, 0x402000)
    words[7] = 1  # no code
    assert followed(words) == (0x401000,)
    assert followed([]) == ()


def test_without_drgn_one_line_says_that_stacks_end_early(
    shared: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(symbolizer_module, "drgn", None)
    symbolizer_module._tell_that_stacks_end_early.cache_clear()
    symbolizer = Symbolizer(images(shared)[0])
    assert symbolizer.stack_of(sampled.Copy(0, (), b"")) == ()
    assert symbolizer.stack_of(sampled.Copy(0, (), b"")) == ()
    assert capsys.readouterr().err.count("drgn 0.0.31") == 1


def test_another_file_than_the_process_had_gives_no_names(shared: Path, tmp_path: Path) -> None:
    pytest.importorskip("drgn")
    found, start, _ = images(shared)
    data = bytearray(shared.read_bytes())
    at = data.index(bytes.fromhex("0123456789abcdef"))
    data[at] ^= 1
    other = tmp_path / "shop.so"
    other.write_bytes(data)
    image = found.images[0]
    found.images[0] = type(image)(
        "/gone/shop.so", str(other), image.start, image.end, image.build_id
    )
    place = Symbolizer(found).locations({start + 4})[start + 4]
    assert place.lines[0].function.startswith("shop.so+0x")


def test_names_of_the_linker_are_undone_at_once() -> None:
    if shutil.which("c++filt") is None:
        pytest.skip("no c++filt")
    assert demangled(["_ZN5Cache6insertEi", "main"]) == {"_ZN5Cache6insertEi": "Cache::insert"}
