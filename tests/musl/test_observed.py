# SPDX-License-Identifier: MIT OR Apache-2.0
"""The debugger and the profiler on programs of musl: processes and core files, linked each way."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "tool"), str(ROOT / "tools")]

for module in ("numpy", "scipy", "elftools", "rich", "google.protobuf"):
    pytest.importorskip(module)

# ruff: noqa: E402 - what follows needs these
from terrace.cli import main
from terrace.debug.sampled.symbolizer import has_unwinder

from debugged import PROGRAMS, aborted, report, running
from sites import MIB, SAMPLED, expect_kept, profiled

BUILD = Path(os.environ.get("TERRACE_MUSL_BUILD", ROOT / "build" / "musl"))
MUSL = Path("/usr/lib/x86_64-linux-musl")
pytestmark = pytest.mark.skipif(
    not (BUILD / "libterrace.so").exists(), reason="build/musl is not built"
)
unwound = pytest.mark.skipif(not has_unwinder(), reason="drgn unwinds nothing here")

WAYS = {
    "preloaded": ([], []),
    "static": (["-static"], [BUILD / "libterrace.a"]),
    "static_pie": (
        ["-static", "-fPIE", "-nostartfiles", "-Wl,-pie,--no-dynamic-linker,-z,text",
         MUSL / "rcrt1.o", MUSL / "crti.o"],
        [BUILD / "libterrace.a", MUSL / "crtn.o"],
    ),
}  # fmt: skip


@pytest.fixture(scope="module", params=WAYS)
def way(request: pytest.FixtureRequest) -> str:
    return request.param


def compiled(way: str, name: str, directory: Path) -> tuple[Path, dict[str, str]]:
    """The program, and what its environment has."""
    before, after = WAYS[way]
    program = directory / name
    flags = ["-O2", "-g", "-fno-builtin-malloc", "-pthread"]
    source = PROGRAMS / f"{name}.c"
    subprocess.run(["musl-gcc", *flags, *before, source, *after, "-o", program], check=True)
    return program, {"LD_PRELOAD": str(BUILD / "libterrace.so") if way == "preloaded" else ""}


@pytest.fixture(scope="module")
def leaks(way, tmp_path_factory) -> tuple[Path, dict[str, str]]:
    return compiled(way, "leaks", tmp_path_factory.mktemp("leaks"))


@pytest.fixture(scope="module")
def sites(way, tmp_path_factory) -> tuple[Path, dict[str, str]]:
    return compiled(way, "sites", tmp_path_factory.mktemp("sites"))


def expect_what_is_leaked(target: object) -> None:
    """One block is in the care of each kind of root, also of a thread's own data."""
    lines = report("findleaks", target)
    assert any(line.endswith(": 17 blocks leaked, 1,904 bytes") for line in lines), lines
    assert ": no fault in " in report("verify", target)[0]


def test_exactly_what_is_leaked_is_found_in_a_process(leaks) -> None:
    program, environment = leaks
    with running(program, 17, 100, **environment) as process:
        expect_what_is_leaked(process.pid)


def test_exactly_what_is_leaked_is_found_in_a_core_file(leaks, tmp_path) -> None:
    program, environment = leaks
    expect_what_is_leaked(aborted(program, tmp_path, 17, 100, **environment))


def expect_stacks(directory: Path, target: object) -> None:
    """musl has no tables for unwinding: stacks end with the first of its functions, which may be
    without a name: some systems' libc.so has symbols of exported functions only."""
    path = directory / "a.folded"
    expect_kept(profiled(directory, target))
    assert main(["profile", "-o", str(path), str(target)]) == 0
    stacks = [line.rpartition(" ")[0] for line in path.read_text(encoding="utf-8").splitlines()]
    assert any(stack.endswith(";take_orders;make_order") for stack in stacks), stacks
    assert not any("0x" in stack.removeprefix("libc.so+0x") for stack in stacks), stacks


@unwound
def test_sites_of_a_process_have_their_bytes(sites, tmp_path) -> None:
    program, environment = sites
    with running(program, **SAMPLED, **environment) as process:
        expect_stacks(tmp_path, process.pid)
        assert 50 * MIB < profiled(tmp_path, "--peak", process.pid)["load"] < 78 * MIB


@unwound
@pytest.mark.parametrize("shape", ["", "threads", "fork"])
def test_sites_of_a_core_file_have_their_bytes(sites, tmp_path, shape) -> None:
    program, environment = sites
    expect_stacks(tmp_path, aborted(program, tmp_path, shape, **SAMPLED, **environment))


@unwound
def test_a_program_writes_its_own_profile(way, sites, tmp_path) -> None:
    program, environment = sites
    if way != "preloaded":
        pytest.skip("nothing takes the functions of the profiler from the archive")
    path = tmp_path / "heap.profile"
    with running(program, SITES_PROFILE=str(path), **environment):
        pass
    expect_stacks(tmp_path, path)
