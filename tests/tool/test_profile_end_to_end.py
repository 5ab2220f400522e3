# SPDX-License-Identifier: MIT OR Apache-2.0
"""`terrace profile` with the real library: a process, a core file, a program; findleaks' stacks."""

import json
import os
import platform
import re
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

for module in ("numpy", "scipy", "elftools", "rich", "google.protobuf"):
    pytest.importorskip(module)

# ruff: noqa: E402 - what follows needs these
from terrace.cli import main
from terrace.debug.sampled.symbolizer import has_unwinder

from debugged import (
    BUILD,
    LIBRARY,
    PATIENCE,
    PROGRAMS,
    aborted,
    compiled,
    report,
    running,
    terrace,
)
from sites import MIB, SAMPLED, by_function, expect_kept, line_of, profiled

pytestmark = [
    pytest.mark.skipif(not LIBRARY.exists(), reason="build/release is not built"),
    pytest.mark.skipif(not has_unwinder(), reason="drgn unwinds nothing here"),
]


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return compiled(tmp_path_factory.mktemp("program"), "-O2", name="sites")


def test_sites_of_a_process_have_their_bytes(program, tmp_path, capsys) -> None:
    with running(program, **SAMPLED) as process:
        expect_kept(profiled(tmp_path, process.pid))
        peak = profiled(tmp_path, "--peak", process.pid)
        assert 50 * MIB < peak["load"] < 78 * MIB, peak
        assert peak.get("read_pages", 0) < MIB
        assert main(["profile", str(process.pid)]) == 0
        text = capsys.readouterr().out
        assert f"read_pages  sites.c:{line_of('calloc(')}" in text and "main  sites.c:" in text
        # What is leaked is as findleaks has it, and the table's own pointers are no roots.
        lines = report("findleaks", process.pid)
        assert any(line.endswith("16,384 blocks leaked, 8,388,608 bytes") for line in lines), lines
        assert lines[lines.index(f"    lose  sites.c:{line_of('malloc(512)')}") + 1].startswith(
            "    main  sites.c:"
        )


@pytest.mark.parametrize("of", ["process", "core"])
def test_findleaks_names_nine_tenths_of_what_groups_of_8_mib_leak(tmp_path, of) -> None:
    """At 512 KiB a group of 8 MiB has 16 samples in the mean, so none is without any."""
    groups = compiled(tmp_path, "-O2", name="groups")
    every = {"TERRACE_PROFILE": "512K"}
    if of == "core":
        lines = report("findleaks", aborted(groups, tmp_path, **every))
    else:
        with running(groups, **every) as process:
            lines = report("findleaks", process.pid)
    source = (PROGRAMS / "groups.c").read_text(encoding="utf-8")
    leaked = {n: int(mib) for n, mib in re.findall(r"GROUP\((\w+), \d+, (\d+)\)", source)}
    named = sum(mib for name, mib in leaked.items() if f"    {name}  groups.c:" in "\n".join(lines))
    assert len(leaked) == 8 and named >= 0.9 * sum(leaked.values()), lines


def test_blocks_that_live_for_microseconds_have_their_stacks(tmp_path) -> None:
    found: dict[str, float] = {}
    with running(compiled(tmp_path, "-O2", name="ring"), TERRACE_PROFILE="16K") as process:
        for _ in range(5):
            for name, size in profiled(tmp_path, process.pid).items():
                found[name] = found.get(name, 0) + size
    assert found["replace"] > 0.5 * sum(found.values()) > 0, found


@pytest.mark.parametrize("option", [None, "--peak"])
def test_a_program_that_holds_nothing_has_a_peak(option) -> None:
    done = terrace("profile", *filter(None, [option]), "--", "sleep", "0.5")
    said = done.stdout + done.stderr
    assert "0 B in 0 blocks in use" in said and ("--peak shows" in said) == (option is None), said


def test_inlined_functions_have_their_line(program, tmp_path) -> None:
    with running(program, **SAMPLED) as process:
        path = tmp_path / "a.json"
        assert main(["profile", "-o", str(path), str(process.pid)]) == 0
    frames = json.loads(path.read_text(encoding="utf-8"))["shared"]["frames"]
    places = {frame["name"]: frame.get("line") for frame in frames}
    assert places["make_order"] == line_of("malloc(256)")
    assert places["take_orders"] == line_of("make_order())")


def test_a_core_file_says_the_same(program, tmp_path) -> None:
    core = aborted(program, tmp_path, **SAMPLED)
    expect_kept(profiled(tmp_path, core))


def test_a_program_writes_its_own_profile(program, tmp_path, capsys) -> None:
    path = tmp_path / "heap.profile"
    with running(program, "churn", SITES_PROFILE=str(path)):
        pass
    found = profiled(tmp_path, path)
    expect_kept({name: size for name, size in found.items() if name not in ("often", "seldom")})
    assert 50 * MIB < profiled(tmp_path, "--peak", path)["load"] < 78 * MIB
    for command in ("findleaks", "umastat"):
        assert main([command, str(path)]) == 1
        assert f"has samples only: `terrace profile {path}`" in capsys.readouterr().err
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    assert main(["profile", str(path)]) == 1
    assert "is cut short" in capsys.readouterr().err


def limited(program: Path, data: int, profile: str) -> tuple[int, str]:
    """Its exit status and what it said, where it may have so many bytes of data."""
    done = subprocess.run(
        [program, "exit"], capture_output=True, text=True, timeout=PATIENCE, check=False,
        env={**os.environ, "LD_PRELOAD": str(LIBRARY), "TERRACE_PROFILE": profile},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (data, data)),
    )  # fmt: skip
    return done.returncode, done.stderr


def test_a_process_near_its_limit_writes_its_profile(program, tmp_path) -> None:
    path = tmp_path / "near"
    status, said = limited(program, 256 * MIB, f"64K,dump={path},at=20%")
    assert (status, said) == (7, f"terrace: TERRACE_PROFILE {path}: the profile is written\n")
    found = profiled(tmp_path, path)  # of the first site, and 51 MiB with all that is resident
    assert found.keys() == {"load"} and 30 * MIB < found["load"] < 80 * MIB, found
    path.unlink()
    assert limited(program, 1024 * MIB, f"64K,dump={path}") == (7, "")
    assert not path.exists()


def test_an_allocation_that_fails_writes_the_profile(program, tmp_path) -> None:
    status, said = limited(program, 56 * MIB, f"64K,dump={tmp_path}/%p,at=100")
    assert status == -signal.SIGSEGV  # the program does not look
    (path,) = tmp_path.iterdir()
    assert said == f"terrace: TERRACE_PROFILE {path}: the profile is written\n"
    found = profiled(tmp_path, path)
    assert found.keys() == {"load"} and found["load"] > 10 * MIB, found


def test_a_profile_that_can_not_be_written_is_told(program, tmp_path) -> None:
    path = tmp_path / "none" / "near"
    status, said = limited(program, 256 * MIB, f"64K,dump={path},at=20%")
    assert status == 7
    assert said == f"terrace: TERRACE_PROFILE {path}: the profile can not be written\n"
    for wrong in ("64K,at=90%", "64K,dump=", f"64K,dump={path},at=0", "64K,frame"):
        assert "; ignored\n" in limited(program, 256 * MIB, wrong)[1], wrong


def test_samples_have_static_probes() -> None:
    readelf, compiler = shutil.which("readelf"), shutil.which("c++")
    if readelf is None or compiler is None:
        pytest.skip("no readelf, or no compiler")
    seen = subprocess.run(
        [compiler, "-E", "-x", "c++", "-"], input="#include <sys/sdt.h>", capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    if seen.returncode != 0:
        pytest.skip("the library was built without systemtap's header")
    notes = subprocess.run(
        [readelf, "-nW", LIBRARY], capture_output=True, text=True, check=True
    ).stdout.split("Provider: ")[1:]
    probes = {tuple(line.split(": ")[-1] for line in note.splitlines()[:2]) for note in notes}
    assert probes == {("otel_memory", "alloc"), ("otel_memory", "free")}
    for note in notes:
        (arguments,) = (line for line in note.splitlines() if "Arguments:" in line)
        assert arguments.count("8@") == 3, note
        # OpenTelemetry's profiler takes them from the registers of a call's arguments.
        if platform.machine() == "x86_64":
            assert arguments.split()[1:] == ["8@%rdi", "8@%rsi", "8@%rdx"], note
        assert int(note.partition("Semaphore: ")[2].split()[0], 16) != 0, note


def bpftrace(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bpftrace", "-q", "-f", "json", *words],
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip


def test_bpftrace_reads_the_probes() -> None:
    if shutil.which("bpftrace") is None or os.geteuid() != 0:
        pytest.skip("no bpftrace, or not root")
    if not Path("/sys/bus/event_source/devices/uprobe").exists():
        pytest.skip("a kernel without uprobes")
    if (tried := bpftrace("-e", "BEGIN { exit(); }")).returncode != 0:
        pytest.skip(f"the kernel does not permit it: {tried.stderr.strip()[-200:]}")
    if b"otel_memory" not in LIBRARY.read_bytes():
        pytest.skip("the library was built without systemtap's header")
    probe = f"usdt:{LIBRARY}:otel_memory:"
    loop = "import time\nprint()\nwhile True: time.sleep(len(bytearray(1 << 20)) / (1 << 30))"
    environment = {**os.environ, "LD_PRELOAD": str(LIBRARY), "TERRACE_PROFILE": "64K"}
    command = [sys.executable, "-u", "-c", loop]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) as process:
        try:
            # bpftrace looks for the semaphores of what is mapped when it starts.
            assert process.stdout is not None and process.stdout.readline() == b"\n"
            seen = bpftrace(
                "-p", str(process.pid), "-e",
                f"{probe}alloc /arg1 > {MIB}/ {{ @blocks = count(); @bytes = sum(arg2); }} "
                f"{probe}free /arg1 > {MIB}/ {{ @freed = count(); }} interval:s:2 {{ exit(); }}",
            )  # fmt: skip
        finally:
            process.kill()
    maps: dict[str, int] = {}
    for line in seen.stdout.splitlines():
        if line.startswith('{"type": "map"'):
            maps.update(json.loads(line)["data"])
    assert maps.keys() == {"@blocks", "@bytes", "@freed"}, seen.stderr
    # Each is sampled, and stands for hardly more than itself.
    assert maps["@bytes"] / maps["@blocks"] == pytest.approx(MIB, rel=0.01)


def test_a_program_is_read_at_its_exit(program, tmp_path) -> None:
    path = tmp_path / "a.pb.gz"
    environment = {**os.environ, "TERRACE_LIBRARY": str(LIBRARY)}
    words = ("--period", "64k", "--allocated", "-o", path, "--", program, "exit")
    done = terrace("profile", *words, env=environment)
    assert done.returncode == 7, done.stderr
    expect_kept(by_function(path))
    # Also what was freed: exactly as many samples as were counted, by what was seen of them.
    allocated = by_function(path, allocated=True)
    assert 100 * MIB < sum(allocated.values()) < 140 * MIB, allocated


def test_what_is_freed_at_once_counts_as_allocated(program, tmp_path) -> None:
    path = tmp_path / "a.pb.gz"
    with running(program, "churn", TERRACE_PROFILE="4m") as process:
        profiled(tmp_path, process.pid, "--seconds", 3, "--allocated")
    allocated = by_function(path, allocated=True)
    assert allocated["often"] > allocated["seldom"] > 0, allocated
    assert by_function(path).get("make_order", 0) == 0


def test_sampling_is_switched_on_in_a_process_that_runs(program, tmp_path, capsys) -> None:
    with running(program, TERRACE_PROFILE="0") as process:
        assert main(["profile", str(process.pid)]) == 1
        line = f"switch that on by `terrace profile --start {process.pid}`"
        assert line in capsys.readouterr().err
        assert main(["profile", "--start", str(process.pid), "--period", "64k"]) == 0
        process.stdin.write(b"x")
        process.stdin.flush()
        assert process.stdout.readline() == b"taken\n"
        found = profiled(tmp_path, process.pid)
        assert found.keys() == {"make_order"} and 11 * MIB < found["make_order"] < 21 * MIB, found
        assert main(["profile", "--start", str(process.pid), "--period", "0"]) == 0
        assert "does not sample any more" in capsys.readouterr().err


def test_a_program_without_symbols(program, tmp_path) -> None:
    strip = shutil.which("strip")
    if strip is None:
        pytest.skip("no strip")
    stripped = tmp_path / "sites"
    subprocess.run([strip, "-o", stripped, program], check=True)
    with running(stripped, **SAMPLED) as process:
        found = profiled(tmp_path, process.pid)
        assert sum(size for name, size in found.items() if name.startswith("sites+0x")) > 40 * MIB


def test_a_static_program(tmp_path) -> None:
    archive = BUILD / "libterrace.a"
    compiler = shutil.which("c++")
    if not archive.exists() or compiler is None:
        pytest.skip("no libterrace.a")
    whole = ["-Wl,--whole-archive", str(archive), "-Wl,--no-whole-archive"]
    try:
        program = compiled(tmp_path, "-O2", "-static", *whole, "-lstdc++", name="sites")
    except subprocess.CalledProcessError:
        pytest.skip("nothing is linked statically here")
    with running(program, LD_PRELOAD="", **SAMPLED) as process:
        expect_kept(profiled(tmp_path, process.pid))
