# SPDX-License-Identifier: MIT OR Apache-2.0
"""`terrace profile` of processes of every shape, and of memory and core files that lie."""

import os
import random
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

for module in ("numpy", "scipy", "elftools", "rich", "google.protobuf", "psutil"):
    pytest.importorskip(module)

# ruff: noqa: E402 - what follows needs these
import psutil
from terrace.cli import main
from terrace.debug.core import CoreTarget
from terrace.debug.memory import Copy
from terrace.debug.sampled.symbolizer import has_unwinder

from debugged import LIBRARY, aborted, compiled, running, terrace
from sites import SAMPLED, expect_kept, profiled

pytestmark = [
    pytest.mark.skipif(not LIBRARY.exists(), reason="build/release is not built"),
    pytest.mark.skipif(not has_unwinder(), reason="drgn unwinds nothing here"),
]

SHAPES = ("threads", "fork", "exec")
# Its own files, and its own numbers of processes.
CONTAINER = """mount -t tmpfs none /mnt && cp "$@" /mnt || exit 77
LD_PRELOAD=/mnt/libterrace.so exec /mnt/sites
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return compiled(tmp_path_factory.mktemp("program"), "-O2", name="sites")


@pytest.fixture(scope="module")
def core(program, tmp_path_factory):
    return aborted(program, tmp_path_factory.mktemp("core"), **SAMPLED)


def innermost(pid: int) -> int:
    """Of a program that waits for its child: the child."""
    children = psutil.Process(pid).children(recursive=True)
    return children[-1].pid if children else pid


@pytest.mark.parametrize("shape", SHAPES)
def test_a_process_of_each_shape(program, tmp_path, shape) -> None:
    with running(program, shape, **SAMPLED) as process:
        if shape == "fork":  # both hold the blocks
            expect_kept(profiled(tmp_path, process.pid))
        expect_kept(profiled(tmp_path, innermost(process.pid)))


@pytest.mark.parametrize("shape", SHAPES)
def test_a_core_of_each_shape(program, tmp_path, shape) -> None:
    expect_kept(profiled(tmp_path, aborted(program, tmp_path, shape, **SAMPLED)))


def test_a_process_in_a_container(program, tmp_path) -> None:
    """Its files are not there under the names that it knows them by."""
    unshare = shutil.which("unshare")
    words = (
        unshare,
        "-m",
        "-p",
        "-f",
        "--mount-proc",
        "sh",
        "-c",
        CONTAINER,
        "sh",
        program,
        LIBRARY,
    )
    if unshare is None or subprocess.run([*words[:5], "true"], check=False).returncode != 0:
        pytest.skip("no namespaces can be made here")
    with running(unshare, *words[1:], LD_PRELOAD="", **SAMPLED) as process:
        expect_kept(profiled(tmp_path, innermost(process.pid)))


def test_without_the_rights_of_ptrace_it_is_one_line(program) -> None:
    if os.getuid() != 0:
        pytest.skip("only root can be somebody else")
    with running(program, **SAMPLED) as process:
        try:
            done = terrace("profile", process.pid, user=65534, group=65534, extra_groups=[])
        except PermissionError:
            pytest.skip("others can not start this Python")
    if "Permission denied" in done.stderr or "No such file" in done.stderr:
        pytest.skip("others can not read this checkout")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1), done.stderr
    assert "ptrace" in done.stderr


def expect_a_report_or_one_line(capsys, command: str, path: Path) -> bool:
    """Never a traceback; true: it was a report."""
    status = main([command, str(path)])
    written = capsys.readouterr()
    assert status in (0, 1)
    assert status == 0 or (written.out == "" and written.err.count("\n") == 1), written.err
    return status == 0


LIES = 20


@pytest.mark.parametrize("command", ["profile", "findleaks", "umastat"])
def test_memory_that_lies(core, capsys, monkeypatch, command) -> None:
    """One in so many words that the command reads says something else."""
    chance = random.Random(1)
    truth = Copy.read
    one_in = 1

    def lie(self, address: int, size: int) -> bytes:
        raw = bytearray(truth(self, address, size))
        for at in range(0, size - 7, 8):
            if chance.random() * one_in < 1:
                word = chance.choice(
                    (0, 1, 1 << 63, (1 << 64) - 1, address, chance.getrandbits(64))
                )
                struct.pack_into("<Q", raw, at, word)
        return bytes(raw)

    monkeypatch.setattr(Copy, "read", lie)
    reports = 0
    for i in range(LIES):
        one_in = 10 ** (1 + i % 5)
        reports += expect_a_report_or_one_line(capsys, command, core)
    assert 0 < reports < LIES  # lies were believed, and lies were found out


def lying_at(monkeypatch, address: int, lie: int, size: int) -> None:
    """The number of `size` bytes at the address reads as `lie`."""
    truth = Copy.read

    def read(self, start: int, count: int) -> bytes:
        raw = bytearray(truth(self, start, count))
        if start <= address and address + size <= start + count:
            raw[address - start : address - start + size] = lie.to_bytes(size, "little")
        return bytes(raw)

    monkeypatch.setattr(Copy, "read", read)


@pytest.mark.parametrize("command", ["findleaks", "umastat"])
def test_a_window_of_more_addresses_than_there_are_tables_of(
    core, capsys, monkeypatch, command
) -> None:
    """What is made of its tables would take more memory than this machine has."""
    layout = CoreTarget(core).layout
    lying_at(monkeypatch, layout.heap + layout.offset("window.extent"), 1 << 46, 8)
    assert not expect_a_report_or_one_line(capsys, command, core)


@pytest.mark.parametrize("command", ["findleaks", "umastat"])
def test_slabs_of_more_blocks_than_they_have_room_for(core, capsys, monkeypatch, command) -> None:
    """What is left out of a report for that would be missed by nobody."""
    target = CoreTarget(core)
    shapes = target.layout.of_heap(target.memory, "slabs.shapes")
    of_class_1 = shapes + target.layout.field("shape").size
    blocks = target.layout.field("shape.blocks")
    lying_at(monkeypatch, of_class_1 + blocks.offset, (1 << 8 * blocks.size) - 1, blocks.size)
    assert not expect_a_report_or_one_line(capsys, command, core)


def test_a_core_file_whose_headers_lie(core, tmp_path, capsys) -> None:
    chance = random.Random(2)
    target = CoreTarget(core)
    headers = min(segment["p_offset"] for segment in target._loads if segment["p_filesz"])
    damaged = tmp_path / "core"
    shutil.copy(core, damaged)
    with damaged.open("r+b") as file:
        before = file.read(headers)
        for _ in range(LIES):
            raw = bytearray(before)
            for _ in range(chance.choice((1, 4, 64))):
                at = chance.randrange(len(raw) // 4 if chance.random() < 0.5 else 4096)
                raw[at] = chance.choice((0, 1, 0x7F, 0xFF, chance.getrandbits(8)))
            file.seek(0)
            file.write(raw)
            file.flush()
            expect_a_report_or_one_line(capsys, "profile", damaged)
