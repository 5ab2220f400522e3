# SPDX-License-Identifier: MIT OR Apache-2.0
"""The wheel and the tar of the libraries in build/release: made, installed, used; terrace-run.

`./terrace package all --check` does more: twice, in fresh roots, and the Debian packages.
"""

import os
import shutil
import subprocess
import sys

import pytest

from conftest import ROOT

BUILT = ROOT / "build" / "release"
pytestmark = pytest.mark.skipif(not (BUILT / "libterrace.so").exists(), reason="not built")


def run(*command, **options):
    return subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, timeout=800, check=False, **options
    )  # fmt: skip


@pytest.fixture(scope="module")
def source():
    from terrace.package.making import Source

    if not shutil.which("git") or run("git", "log", "-1", cwd=ROOT).returncode != 0:
        pytest.skip("no commit to take the time from")
    return Source(ROOT, BUILT)


def test_the_wheel_in_a_fresh_environment(source, tmp_path):
    pytest.importorskip("auditwheel")
    pytest.importorskip("setuptools", minversion="70.1")
    from terrace.package import wheel

    (made,) = wheel.make(source, tmp_path / "wheel")
    assert "-py3-none-manylinux_2_" in made.name  # else auditwheel found a library of another kind
    python = tmp_path / "environment" / "bin" / "python"
    assert run(sys.executable, "-m", "venv", "--without-pip", python.parent.parent).returncode == 0
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python)
    done = run(*pip, "install", "--no-deps", made)
    assert done.returncode == 0, done.stderr
    used = run("sh", source.recipes / "wheel" / "use.sh", python.with_name("terrace"), python)
    assert used.stdout.endswith("wheel: used\n"), used
    assert run(*pip, "uninstall", "--yes", "terrace").returncode == 0
    left = [path for path in python.parent.parent.rglob("*terrace*")]
    assert left == []


@pytest.fixture(scope="module")
def prefix(source, tmp_path_factory):
    """The tar, unpacked."""
    pytest.importorskip("argparse_manpage")
    pytest.importorskip("shtab")
    if not shutil.which("pandoc"):
        pytest.skip("no pandoc")
    from terrace.package import tar

    directory = tmp_path_factory.mktemp("tar")
    made = tar.make_for("glibc", source.built, source, directory / "made")
    assert run("tar", "-xf", made, "--strip-components=1", cwd=directory).returncode == 0
    return directory


def test_programs_are_linked_to_the_unpacked_tar(prefix, tmp_path):
    shutil.copy(ROOT / "tests/install/programs/program.c", tmp_path)
    if shutil.which("pkg-config"):
        search = {**os.environ, "PKG_CONFIG_PATH": str(prefix / "lib/pkgconfig")}
        flags = run("pkg-config", "--cflags", "--libs", "terrace", env=search).stdout.split()
        assert f"-L{prefix}/lib/pkgconfig/.." in flags
        done = run("cc", "program.c", "-o", "program", *flags, f"-Wl,-rpath,{prefix}/lib", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert run(tmp_path / "program").returncode == 0
    shutil.copy(ROOT / "packaging/linked/CMakeLists.txt", tmp_path)
    configured = run("cmake", "-S", ".", "-B", "built", f"-DCMAKE_PREFIX_PATH={prefix}", cwd=tmp_path)
    assert configured.returncode == 0, configured.stderr
    assert run("cmake", "--build", "built", cwd=tmp_path).returncode == 0
    assert run(tmp_path / "built" / "linked").returncode == 0
    assert f"{prefix}/lib/libterrace.so.0" in run("ldd", tmp_path / "built" / "linked").stdout


def terrace_run(prefix, *command, **variables):
    return run(prefix / "bin" / "terrace-run", *command, env={**os.environ, **variables})


def test_the_name_to_preload_has_no_version(prefix):
    assert (prefix / "lib" / "libterrace-preload.so").resolve().name == "libterrace.so.0.1.0"


@pytest.mark.parametrize("option", [(), ("--hardened",)])
def test_terrace_run_preloads_and_keeps_the_status(prefix, option):
    done = terrace_run(prefix, *option, "sh", "-c", "cat /proc/self/maps; exit 7")
    assert done.returncode == 7, done
    assert f"{prefix}/lib/libterrace{'-hardened' if option else ''}.so.0" in done.stdout


def test_terrace_run_looks_at_the_interpreter_of_a_script(prefix, tmp_path):
    script = tmp_path / "script"
    script.write_text("#!/usr/bin/env -S cat\n")
    script.chmod(0o755)
    assert terrace_run(prefix, script).stdout == script.read_text()
    script.write_text("#!/sbin/ldconfig -V\n")  # linked statically
    assert "linked statically" in terrace_run(prefix, script).stderr


def test_without_a_library_beside_it_the_linker_finds_the_name(prefix, tmp_path):
    script = shutil.copy(prefix / "bin" / "terrace-run", tmp_path)
    found = run(script, "cat", "/proc/self/maps", env={**os.environ, "LD_LIBRARY_PATH": str(prefix / "lib")})
    assert "libterrace.so.0" in found.stdout
    missing = run(script, "cat", "/proc/self/maps")
    assert (missing.returncode, missing.stdout) == (125, "")
    assert "libterrace-preload.so is not loaded into cat: cannot open shared object" in missing.stderr


def changed(tmp_path, change, mode=0o755):
    """A copy of a program that is another one in its first bytes."""
    copy = tmp_path / "program"
    copy.write_bytes(change(bytearray(open(os.path.realpath(shutil.which("cat")), "rb").read())))
    copy.chmod(mode)
    return copy


def of_another_machine(data):
    data[18:20] = b"\x16\x00"  # s390x
    return data


def of_32_bits(data):
    data[4] = 1
    return data


def of_musl(data):
    for linker in (b"/lib64/ld-linux-x86-64.so.2", b"/lib/ld-linux-aarch64.so.1"):
        data = data.replace(linker, b"/lib/ld-musl.so.1".rjust(len(linker), b"/"))
    return data


@pytest.mark.parametrize(
    ("change", "mode", "reason"),
    [
        (of_another_machine, 0o755, "is for another architecture than"),
        (of_32_bits, 0o755, "is a program of 32 bits"),
        (of_musl, 0o755, "is of musl"),
        (lambda data: data, 0o2755, "is set-user-ID or set-group-ID"),
        (lambda data: data[4:], 0o755, "is no program, and no script that begins with #!"),
    ],
)
def test_terrace_run_refuses_what_would_run_without(prefix, tmp_path, change, mode, reason):
    done = terrace_run(prefix, changed(tmp_path, change, mode), "/dev/null")
    assert done.returncode == 125, done
    assert reason in done.stderr


@pytest.mark.skipif(not shutil.which("musl-gcc"), reason="no musl-gcc")
def test_the_library_and_the_program_are_of_one_libc(prefix, tmp_path):
    (tmp_path / "program.c").write_text("int main(void) { return 0; }\n")
    (tmp_path / "bin").mkdir()
    (tmp_path / "lib").mkdir()
    script = shutil.copy(prefix / "bin" / "terrace-run", tmp_path / "bin")
    library = "lib/libterrace-preload.so"
    assert run("musl-gcc", "program.c", "-o", "program", cwd=tmp_path).returncode == 0
    assert run("musl-gcc", "-shared", "-fPIC", "program.c", "-o", library, cwd=tmp_path).returncode == 0
    assert run(script, tmp_path / "program").returncode == 0
    of_glibc = run(script, "true")
    assert of_glibc.returncode == 125
    assert "true is of glibc, and" in of_glibc.stderr
    (tmp_path / "lib" / "musl").mkdir()
    shutil.move(tmp_path / library, tmp_path / "lib" / "musl")
    shutil.copy(prefix / "lib" / "libterrace.so", tmp_path / library)
    assert run(script, tmp_path / "program").returncode == 0
    chosen = run(script, tmp_path / "program", env={**os.environ, "TERRACE_LIBRARY": str(tmp_path / library)})
    assert chosen.returncode == 125
    assert "program is of musl, and" in chosen.stderr
    shutil.rmtree(tmp_path / "lib")
    assert run(script, tmp_path / "program").returncode == 125
    shutil.copy(prefix / "lib" / "libterrace.so", tmp_path / "libterrace-preload.so")
    found = run(script, tmp_path / "program", env={**os.environ, "LD_LIBRARY_PATH": str(tmp_path)})
    assert found.returncode == 125
    assert "is not loaded into" in found.stderr
    assert found.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "variables", "status", "message"),
    [
        ((), {}, 125, "usage: terrace-run"),
        (("no-such-program",), {}, 127, "no-such-program: not found"),
        (("/etc/passwd",), {}, 126, "/etc/passwd: can not be executed"),
        (("true",), {"TERRACE_LIBRARY": "/nowhere/libterrace.so"}, 125, "there is no library /nowhere"),
        (("true",), {"TERRACE_LIBRARY": "/a b/libterrace.so"}, 125, "can not name a path with a space"),
        (("true",), {"TERRACE_LIBRARY": "/etc/passwd"}, 125, "another architecture than /etc/passwd"),
    ],
)
def test_terrace_run_says_what_is_wrong(prefix, words, variables, status, message):
    done = terrace_run(prefix, *words, **variables)
    assert done.returncode == status
    assert message in done.stderr
