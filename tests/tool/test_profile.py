# SPDX-License-Identifier: MIT OR Apache-2.0
"""Profiles in each format, with made-up samples; google's pprof reads them."""

import gzip
import io
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

for module in ("numpy", "elftools", "rich", "google.protobuf"):
    pytest.importorskip(module)

# ruff: noqa: E402 - what follows needs these
from rich.console import Console
from terrace.cli import main, parse
from terrace.debug.sampled.frames import Line, Location, Region
from terrace.errors import TerraceError
from terrace.profile import command_line, formats
from terrace.profile.diff import difference
from terrace.profile.flamegraph import page
from terrace.profile.model import Profile, Values
from terrace.profile.pprof import decode, encode
from terrace.profile.switch import bytes_of
from terrace.profile.text import print_sites, short, sites

SHOP = Region(0x400000, 0x500000, 0x1000, "/opt/shop", "0123abcd")
OTHER = Region(0x7F0000000000, 0x7F0000100000, 0, "/usr/lib/libvector.so", "")

MAIN = Location(0x400100, (Line("main", "/src/shop.cpp", 50),), SHOP)
CACHE = Location(
    0x400200,
    (
        Line("Cache::grow", "/src/cache.h", 7),
        Line("Cache::insert(int)", "/src/cache.cpp", 12, "_ZN5Cache6insertEi"),
    ),
    SHOP,
)
ORDER = Location(0x400300, (Line("new_order", "/src/shop.cpp", 20),), SHOP)
NEW = Location(
    0x7F0000000100, (Line("std::allocator<int>::allocate", "/usr/include/new", 3),), OTHER
)


def profile(orders: float = 1000, has_allocated: bool = True) -> Profile:
    return Profile(
        {
            (NEW, CACHE, MAIN): Values(10.4, 10.4 * (1 << 20), 20, 20 << 20),
            (ORDER, MAIN): Values(orders, orders * 208, 5000, 5000 * 208),
        },
        [SHOP, OTHER], 512 << 10, 25, time=10**18, has_allocated=has_allocated,
        title="process 7 (shop)",
    )  # fmt: skip


def shown(each: Profile, differs: bool = False) -> str:
    text = io.StringIO()
    print_sites(each, Console(file=text, width=100, highlight=False), differs)
    return text.getvalue()


def test_the_file_of_pprof_has_what_the_profile_has() -> None:
    found = decode(encode(profile()), "a.pb.gz")
    assert found.regions == [SHOP, OTHER]
    assert found.period == 512 << 10
    assert sorted(round(v.bytes) for v in found.stacks.values()) == [208000, 10905190]
    assert found.total.allocated_objects == 5020
    lines = [line for stack in found.stacks for where in stack for line in where.lines]
    assert Line("Cache::insert(int)", "/src/cache.cpp", 12, "_ZN5Cache6insertEi") in lines


def test_numbers_of_what_was_allocated_are_only_there_if_they_are_known() -> None:
    found = decode(encode(profile(has_allocated=False)), "a.pb.gz")
    assert not found.has_allocated
    assert found.total.allocated_bytes == 0


@pytest.mark.parametrize("raw", [b"", b"\x1f\x8bxx", b"no profile", gzip.compress(b"\xff\xff")])
def test_what_is_no_profile_is_one_line(raw: bytes) -> None:
    with pytest.raises(TerraceError, match="is no"):
        decode(raw, "a.pb.gz")


@pytest.fixture(scope="module")
def pprof() -> list[str]:
    """Go builds it at its first use."""
    go = shutil.which("go")
    if go is None:
        pytest.skip("no go")
    return [go, "tool", "pprof"]


def test_pprof_reads_it(pprof: list[str], tmp_path: Path) -> None:
    path = tmp_path / "shop.pb.gz"
    path.write_bytes(encode(profile()))

    def said(*options: str) -> str:
        done = subprocess.run([*pprof, *options, path], capture_output=True, text=True, check=True)
        return done.stdout

    top = said("-top", "-unit=B")
    assert "Type: inuse_space" in top
    assert "10905190B 98.13%" in top
    lines = said("-traces", "-lines", "-sample_index=alloc_objects")
    assert "Cache::grow /src/cache.h:7 (inline)" in lines
    assert "5000" in lines
    raw = said("-raw")
    assert "0x400000/0x500000/0x1000 /opt/shop 0123abcd [FN][FL][LN][IN]" in raw
    assert "alloc_space/bytes inuse_objects/count inuse_space/bytes[dflt]" in raw


def test_collapsed_stacks_begin_with_the_outermost() -> None:
    assert formats.collapsed(profile()) == (
        "main;Cache::insert(int);Cache::grow;std::allocator<int>::allocate 10905190\n"
        "main;new_order 208000\n"
    )


def test_speedscope_has_bytes_and_blocks() -> None:
    document = json.loads(formats.speedscope(profile()))
    size, blocks = document["profiles"]
    names = [frame["name"] for frame in document["shared"]["frames"]]
    assert [names[i] for i in size["samples"][-1]] == ["main", "new_order"]
    assert size["endValue"] == sum(size["weights"]) == 10905190 + 208000
    assert blocks["weights"] == [10, 1000]


def test_the_page_needs_nothing_else() -> None:
    text = page(profile())
    assert '"name":"main"' in text and "flamegraph()" in text
    assert "@" not in text.split("<script>")[0].replace("@media", "")
    for word in (' src="', "<link", "import(", "@import"):
        assert word not in text, word


def test_names_are_not_taken_for_markup() -> None:
    evil = Profile({(Location(1, (Line("</script><b>[red]"),)),): Values(1, 10)}, title="<i>")
    assert "</script><b>" not in page(evil)
    assert "<i>" not in page(evil)
    assert "</script><b>[red]" in shown(evil)


def test_sites_are_what_called_the_allocator() -> None:
    found = sites(profile())
    assert [site.line.function for site in found] == ["Cache::grow", "new_order"]
    assert [line.function for line in found[0].callers()] == ["Cache::insert(int)", "main"]


@pytest.mark.parametrize(
    "name",
    "my_malloc xmalloc g_malloc0 g_malloc0_n PyMem_Malloc _emalloc_56 xrealloc my_strdup".split(),
)
def test_functions_around_malloc_are_passed_over(name: str) -> None:
    around, caller = Location(1, (Line(name),)), Location(2, (Line("parse"),))
    assert [s.line.function for s in sites(Profile({(around, caller): Values(1, 10)}))] == ["parse"]


@pytest.mark.parametrize("name", ["reallocate_table", "mallocator", "count_mallocs", "dup"])
def test_functions_of_like_names_are_not(name: str) -> None:
    stack = Location(1, (Line(name),)), Location(2, (Line("parse"),))
    assert [s.line.function for s in sites(Profile({stack: Values(1, 10)}))] == [name]


def test_of_a_script_the_table_has_its_own_functions() -> None:
    made = (Line("make", "/shop/shop.py"),), (Line("alloc", "node:buffer", 3),), (Line("JIT"),)
    script, internal, other = (Location(0x7F1000000000 + i, lines) for i, lines in enumerate(made))
    scripted = Profile(
        {
            (NEW, ORDER, internal, script, other, MAIN): Values(1, 4096),
            (ORDER, internal, MAIN): Values(1, 1024),
        },
        [SHOP, OTHER],
    )
    for each in (scripted, decode(encode(scripted), "a.pb.gz")):
        names = [[at.function for at in (site.line, *site.callers())] for site in sites(each)]
        assert names == [["make"], ["new_order", "alloc", "main"]]
    assert "make  shop.py" in shown(scripted)


def test_text_says_how_much_and_where() -> None:
    text = shown(profile())
    assert "10.4 MiB" in text and "98.1 %" in text and "cache.h:7" in text
    assert text.index("Cache::grow") < text.index("new_order")
    assert "10.6 MiB in 1,010 blocks in use, estimated from 25 samples, one in 512 KiB" in text


def test_a_difference_has_what_grew_and_what_shrank() -> None:
    moved = {
        tuple(Location(where.address + 99, where.lines) for where in stack): values
        for stack, values in profile(400).stacks.items()
    }
    change = difference(profile(), Profile(moved, title="later"))
    assert [round(v.objects) for v in change.stacks.values()] == [-600]
    assert "-122 KiB" in shown(change, differs=True)
    assert '"delta":-124800' in page(Profile(moved, title="later"), profile())


def test_long_names_lose_the_parameters_of_templates_first() -> None:
    name = "std::map<" + "std::basic_string<char, std::less<int>>, " * 3 + ">::operator<<"
    assert short(name) == "std::map::operator<<"
    assert len(short("x" * 500)) == 100


@pytest.mark.parametrize(
    ("path", "kind"),
    [(None, "text"), ("a.html", "flamegraph"), ("a.json", "speedscope"), ("a.pb.gz", "pprof"),
     ("heap", "pprof"), ("a.folded", "collapsed"), ("a.txt", "text")],
)  # fmt: skip
def test_the_format_follows_from_the_file(path: str | None, kind: str) -> None:
    assert command_line.chosen_format(None, path) == kind
    assert command_line.chosen_format("text", path) == "text"


def test_a_period_is_a_number_of_bytes() -> None:
    assert [bytes_of(text) for text in ("512k", "2M", "0", None)] == [1 << 19, 1 << 21, 0, 1 << 19]
    with pytest.raises(TerraceError, match="--period much"):
        bytes_of("much")


def test_options_of_the_program_are_its_own() -> None:
    options = parse(["profile", "--peak", "-o", "a.html", "--", "ls", "-o", "--peak"])
    assert (options.words, options.output) == (["ls", "-o", "--peak"], "a.html")


def test_files_of_two_moments_are_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = tmp_path / "a.pb.gz", tmp_path / "b.pb.gz"
    a.write_bytes(encode(profile()))
    b.write_bytes(encode(profile(5000)))
    assert main(["profile", "--diff", str(a), str(b)]) == 0
    assert "+812 KiB" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["4194999"], "there is no process 4194999"),
        (["--diff", "/nowhere", "/nowhere"], "/nowhere: No such file or directory"),
        (["-o", "/nowhere/a.html", "1"], "there is no directory /nowhere"),
        ([], "name a process, a core file, or -- PROGRAM"),
        (["--seconds", "1", "--", "ls"], "--seconds is for a process that runs already"),
        ([str(os.getpid())], "has no Terrace in it"),
        ([str(os.getpid()), "--allocated"], "say by --seconds N how long to look"),
    ],
)
def test_what_can_not_be_done_is_one_line(
    words: list[str], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["profile", *words]) in (1, 2)
    error = capsys.readouterr().err
    assert line in error and error.count("\n") == 1
