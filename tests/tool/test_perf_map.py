# SPDX-License-Identifier: MIT OR Apache-2.0
"""Names of code that is made at run time: what a map says, and which map is taken."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("numpy")

from terrace.debug.sampled.frames import Line
from terrace.debug.sampled.perf_map import PerfMap, line_of, of_core, of_process

TEXT = """7f0000001000 100 py::old:/shop/old.py
0x7f0000001080 0x20 Builtin:new one
no line
7f0000003000 10
7f0000002000 b py::Shop.take.<locals>.<lambda>:/shop: open/orders.py
7f00000020"""


def test_the_last_line_that_has_an_address_names_it() -> None:
    found = PerfMap(TEXT)
    assert found.name(0x7F0000001000) == found.name(0x7F00000010FF) == "py::old:/shop/old.py"
    assert found.name(0x7F0000001080) == found.name(0x7F000000109F) == "Builtin:new one"
    assert found.name(0x7F0000001100) is found.name(0x7F0000000FFF) is found.name(0) is None
    assert found.name(-1) is None
    assert PerfMap().name(0x7F0000001000) is None


def test_trampolines_are_those_of_python() -> None:
    found = PerfMap(TEXT)
    assert found.is_trampoline(0x7F0000002000) and found.is_trampoline(0x7F0000001000)
    assert not found.is_trampoline(0x7F0000001080) and not found.is_trampoline(0x7F0000003000)


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("py::main:/shop/orders.py", Line("main", "/shop/orders.py")),
        ("py::<module>:<frozen runpy>", Line("<module>", "<frozen runpy>")),
        ("py::A.<lambda>:/a: b/c.py", Line("A.<lambda>", "/a: b/c.py")),
        ("JS:*take /shop/a b.js:3:14", Line("take", "/shop/a b.js", 3)),
        ("JS:~ node:internal/main:1:1", Line("(anonymous)", "node:internal/main", 1)),
        ("LazyCompile:^get file:///shop/a.mjs:7:1", Line("get", "file:///shop/a.mjs", 7)),
        ("void Shop.take(int)", Line("void Shop.take(int)")),
        ("Interpreter", Line("Interpreter")),
    ],
)
def test_names_of_known_forms_have_a_file(name: str, line: Line) -> None:
    assert line_of(name) == line


@pytest.fixture
def own() -> Iterator[Path]:
    """The map of this process."""
    path = Path(f"/tmp/perf-{os.getpid()}.map")
    if path.exists():
        pytest.skip("this process has one already")
    path.write_text(TEXT, encoding="utf-8")
    yield path
    path.unlink()


def is_taken() -> bool:
    return of_process(os.getpid()).name(0x7F0000001000) is not None


def test_the_map_of_a_process(own: Path, tmp_path: Path) -> None:
    assert is_taken()
    os.utime(own, (1e9, 1e9))  # of a process that had this number before
    assert not is_taken()
    os.utime(own)
    assert is_taken()
    elsewhere = tmp_path / "map"
    own.rename(elsewhere)
    own.symlink_to(elsewhere)
    assert not is_taken()
    own.unlink()
    os.mkfifo(own)
    assert not is_taken()


def test_a_map_of_somebody_else_is_not_taken(own: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("only root can give files away")
    os.chown(own, 65534, 65534)
    assert not is_taken()


def test_the_map_beside_a_core_file_counts_first(own: Path, tmp_path: Path) -> None:
    core = tmp_path / "core"
    core.touch()
    later = time.time() + 10
    os.utime(core, (later, later))
    assert of_core(core, os.getpid()).name(0x7F0000001000)
    (tmp_path / own.name).write_text("7f0000001000 100 other", encoding="utf-8")
    assert of_core(core, os.getpid()).name(0x7F0000001000) == "other"
    assert of_core(core, 0).name(0x7F0000001000) is None
    assert of_core(tmp_path / "gone", os.getpid()).name(0x7F0000001000) is None
