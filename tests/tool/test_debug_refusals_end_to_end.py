# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the debugger can not read, and why: one line each, with the real library, build/release."""

import gzip
import os
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from debugged import BUILD, LIBRARY, aborted, compiled, in_gdb, report, running, terrace
from terrace.errors import TerraceError

for module in ("numpy", "scipy", "elftools", "rich"):
    pytest.importorskip(module)
pytestmark = pytest.mark.skipif(not LIBRARY.exists(), reason="build/release is not built")


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return compiled(tmp_path_factory.mktemp("program"))


@pytest.fixture(scope="module")
def core(program, tmp_path_factory):
    return aborted(program, tmp_path_factory.mktemp("core"), 9, 200)


@pytest.fixture
def library(tmp_path):
    """A copy, for what is done to it."""
    return Path(shutil.copy(LIBRARY.resolve(), tmp_path / "libterrace.so"))


def refusal(*arguments: object) -> str:
    with pytest.raises(TerraceError) as error:
        report(*arguments)
    assert "\n" not in str(error.value)
    return str(error.value)


ERRORS = {
    "no process": (lambda **_: "4194303", "there is no process 4194303"),
    "no Terrace": (lambda **_: str(os.getpid()), "has no Terrace in it"),
    "no file": (lambda **_: "/no/such/core", "No such file"),
    "no core": (lambda **_: __file__, "is no core file"),
    "a program": (lambda **_: sys.executable, "not a core file"),
}


@pytest.mark.parametrize(
    ("case", "subcommand"),
    [*((case, "findleaks") for case in ERRORS), ("no Terrace", "umastat"), ("no file", "verify")],
)
def test_what_can_not_be_read_is_one_line_and_status_1(case, subcommand):
    if "libterrace" in os.environ.get("LD_PRELOAD", ""):
        pytest.skip("this process has Terrace itself")
    name, expected = ERRORS[case]
    done = terrace(subcommand, name())
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1
    assert expected in done.stderr


@pytest.mark.parametrize("length", [0, 40, 5000, 1_000_000])
def test_a_truncated_core_is_one_line_and_status_1(core, tmp_path, length):
    cut = tmp_path / "cut"
    cut.write_bytes(core.read_bytes()[:length])
    done = terrace("findleaks", cut)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1


def test_without_the_rights_of_ptrace_it_says_so(program):
    if os.getuid() != 0:
        pytest.skip("only root can be somebody else")
    with running(program, 1, 100) as process:
        try:
            done = terrace("umastat", process.pid, user=65534, group=65534, extra_groups=[])
        except PermissionError:
            pytest.skip("others can not start this Python")
    if "Permission denied" in done.stderr or "No such file" in done.stderr:
        pytest.skip("others can not read this checkout")
    assert done.returncode == 1
    assert "ptrace" in done.stderr


@pytest.mark.parametrize("command", ["findleaks", "umastat", "verify"])
def test_a_core_whose_library_is_gone_names_it(program, library, tmp_path, command):
    core = aborted(program, tmp_path, 5, 100, LD_PRELOAD=str(library))
    library.unlink()
    assert refusal(command, core) == (
        f"the core file has no copy of {library}, and that is not there any more: put the file "
        "there that the process had"
    )


def test_gdb_says_the_same_of_a_library_that_is_gone(program, library, tmp_path):
    core = aborted(program, tmp_path, 5, 100, LD_PRELOAD=str(library))
    library.unlink()
    shown = in_gdb("-ex", "umem findleaks", program, core)
    assert f"the core file has no copy of {library}, and that is not there any more" in shown


def test_a_library_that_was_stripped_since_is_the_same(program, library, tmp_path):
    if shutil.which("strip") is None:
        pytest.skip("no strip")
    core = aborted(program, tmp_path, 5, 100, LD_PRELOAD=str(library))
    subprocess.run(["strip", library], check=True)
    assert any(": 5 blocks leaked" in line for line in report("findleaks", core))


def test_another_library_in_its_place_is_refused(program, library, tmp_path):
    core = aborted(program, tmp_path, 5, 100, LD_PRELOAD=str(library))
    other = BUILD / "libumem_malloc.so"
    if not other.exists():
        pytest.skip("build/release has no libumem_malloc.so")
    shutil.copy(other.resolve(), library)
    assert f"{library} is not what it was when core file {core} was written" in refusal(
        "findleaks", core
    )


@pytest.mark.parametrize("replaced", [False, True])
def test_the_library_of_a_process_needs_no_file(program, library, replaced):
    with running(program, 5, 100, LD_PRELOAD=str(library)) as process:
        library.unlink()
        if replaced:
            shutil.copy((BUILD / "libumem_malloc.so").resolve(), library)
        assert any(": 5 blocks leaked" in line for line in report("findleaks", process.pid))


def test_a_core_without_data_says_so(program, tmp_path):
    kinds = Path("/proc/self/coredump_filter")
    before = kinds.read_text(encoding="ascii")
    try:
        kinds.write_text("0", encoding="ascii")  # for the child
        core = aborted(program, tmp_path, 5, 100)
    finally:
        kinds.write_text(f"0x{before}", encoding="ascii")
    assert "has no copy of the program's data" in refusal("findleaks", core)


def test_a_core_that_is_compressed_is_to_be_unpacked(core, tmp_path):
    packed = tmp_path / "core.gz"
    packed.write_bytes(gzip.compress(core.read_bytes(), 1))
    assert refusal("umastat", packed) == f"{packed} is compressed: unpack it first, by `gzip -d`"


@pytest.mark.parametrize(
    ("at", "byte", "expected"),
    [(4, 1, "is of a program of 32 bits"), (18, 8, "is of a program for another machine")],
)
def test_a_core_of_another_kind_of_machine_is_refused(core, tmp_path, at, byte, expected):
    other = bytearray(core.read_bytes())
    other[at] = byte
    copy = tmp_path / "other"
    copy.write_bytes(other)
    assert expected in refusal("findleaks", copy)


def test_a_process_of_32_bits_is_told(tmp_path):
    if os.uname().machine != "x86_64":
        pytest.skip("another machine")
    code = bytes.fromhex("b81d000000 cd80 ebf7")  # pause, for ever
    base, header, segment = 0x8048000, 52, 32
    size = header + segment + len(code)
    ident = b"\x7fELF\x01\x01\x01" + bytes(9)
    begin = base + header + segment
    numbers = (2, 3, 1, begin, header, 0, 0, header, segment, 1, 0, 0, 0)
    load = struct.pack("<8I", 1, 0, base, base, size, size, 5, 4096)
    program = tmp_path / "small"
    program.write_bytes(ident + struct.pack("<2H5I6H", *numbers) + load + code)
    program.chmod(0o755)
    try:
        process = subprocess.Popen([program])
    except OSError:
        pytest.skip("this kernel runs no programs of 32 bits")
    try:
        assert "is of a program of 32 bits" in refusal("findleaks", process.pid)
    finally:
        process.kill()
        process.wait()


def test_leaks_through_a_function_take_stacks(program):
    with running(program, 5, 100) as process:
        lines = report("findleaks", process.pid, "--through", "leak")
    assert lines[0].endswith("no stacks are known: that takes libumem and UMEM_DEBUG=audit")
