# SPDX-License-Identifier: MIT OR Apache-2.0
"""`terrace profile` where code was made at run time: stacks go on through it, and it has names."""

import contextlib
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

for module in ("numpy", "scipy", "elftools", "rich", "google.protobuf"):
    pytest.importorskip(module)

# ruff: noqa: E402 - what follows needs these
from terrace.cli import main
from terrace.debug.core import CoreTarget
from terrace.debug.sampled.symbolizer import has_unwinder

from debugged import LIBRARY, PROGRAMS, aborted, compiled, report, running, terrace
from sites import MIB, SAMPLED

pytestmark = [
    pytest.mark.skipif(not LIBRARY.exists(), reason="build/release is not built"),
    pytest.mark.skipif(not has_unwinder(), reason="drgn unwinds nothing here"),
]

SITES = {
    "main;through;directly;take;take_orders",
    "main;through;directly;Lost.lose;lose",
    "main;through;directly;read;read_pages",
}


@pytest.fixture(scope="module")
def program(tmp_path_factory) -> Path:
    directory = tmp_path_factory.mktemp("program")
    return compiled(directory, "-O2", "-fomit-frame-pointer", name="made")


def map_of(pid: int) -> Path:
    return Path(f"/tmp/perf-{pid}.map")


@contextlib.contextmanager
def with_map(*command: object, **variables: str) -> Iterator[int]:
    """A program that writes a map, and its number."""
    with running(Path(str(command[0])), *command[1:], **SAMPLED, **variables) as process:
        try:
            yield process.pid
        finally:
            map_of(process.pid).unlink(missing_ok=True)


def stacks_of(target: object, directory: Path, *options: str) -> dict[str, int]:
    path = directory / "a.folded"
    assert main(["profile", *options, "-o", str(path), str(target)]) == 0
    lines = path.read_text(encoding="utf-8").splitlines()
    return {stack: int(size) for stack, _, size in (line.rpartition(" ") for line in lines)}


def expect_sites(stacks: dict[str, int]) -> None:
    """The bounds are 5 standard errors of 16 MiB at a period of 64 KiB."""
    for site in SITES:
        size = sum(size for stack, size in stacks.items() if stack.endswith(site))
        assert abs(size - 16 * MIB) < 5 * MIB, stacks


def test_a_process(program, tmp_path, capsys) -> None:
    with with_map(program) as pid:
        expect_sites(stacks_of(pid, tmp_path))
        assert main(["profile", str(pid)]) == 0
        text = " ".join(capsys.readouterr().out.split())
        assert (
            "take orders.py" in text and "Lost.lose lost.py" in text and "read pages.js:7" in text
        )
        leaks = "\n".join(report("findleaks", pid))
        assert (
            "    lose  made.c:" in leaks
            and "    Lost.lose  lost.py\n    directly  made.c:" in leaks
        )


def test_without_the_map_stacks_end_at_such_code(program, tmp_path) -> None:
    with with_map(program) as pid:
        map_of(pid).unlink()
        stacks = stacks_of(pid, tmp_path)
        assert not any(name in stack for stack in stacks for name in ("Lost", "take;", "read;"))
        assert sum(stacks.values()) > 40 * MIB


def test_a_core_file_with_the_map_beside_it_or_where_it_was(program, tmp_path) -> None:
    core = aborted(program, tmp_path, **SAMPLED)
    made = map_of(CoreTarget(core)._pid())
    beside = core.with_name(made.name)
    try:
        expect_sites(stacks_of(core, tmp_path))
        later = time.time() + 1
        os.utime(made, (later, later))  # a later process with that number
        assert not any("Lost" in stack for stack in stacks_of(core, tmp_path))
        shutil.copy(made, beside)
        expect_sites(stacks_of(core, tmp_path))
    finally:
        made.unlink()


def test_a_profile_that_the_program_wrote(program, tmp_path) -> None:
    written = tmp_path / "heap.profile"
    with with_map(program, "write", written) as pid:
        expect_sites(stacks_of(written, tmp_path))
        shutil.copy(map_of(pid), tmp_path)
    expect_sites(stacks_of(written, tmp_path))


def test_a_program_at_its_exit(program, tmp_path) -> None:
    path = tmp_path / "a.json"
    environment = {**os.environ, "TERRACE_LIBRARY": str(LIBRARY)}
    done = terrace("profile", "--period", "64k", "-o", path, "--", program, "exit", env=environment)
    assert done.returncode == 7, done.stderr
    map_of(int(done.stdout)).unlink()
    frames = json.loads(path.read_text(encoding="utf-8"))["shared"]["frames"]
    assert {"name": "take", "file": "/shop/orders.py"} in frames
    assert {"name": "read", "file": "/shop/pages.js", "line": 7} in frames


def test_a_process_in_a_container(program, tmp_path) -> None:
    """It has another /tmp, and its own number there is 1."""
    unshare = shutil.which("unshare")
    words = (unshare, "-m", "-p", "--mount-proc", "-f", "--kill-child", "sh", "-c")
    if unshare is None or subprocess.run([*words, "true"], check=False).returncode != 0:
        pytest.skip("no namespaces can be made here")
    steps = (
        "mount -t tmpfs none /mnt", f"cp {program} {LIBRARY} /mnt", "mount -t tmpfs none /tmp",
        f"LD_PRELOAD=/mnt/{LIBRARY.name} exec /mnt/made",
    )  # fmt: skip
    with with_map(*words, " && ".join(steps), LD_PRELOAD="") as pid:
        (child,) = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
        expect_sites(stacks_of(child, tmp_path))


def python() -> list[str]:
    """The newest that has trampolines."""
    for minor in (14, 13, 12):
        environment = {**os.environ, "PYENV_VERSION": f"3.{minor}"}
        asked = (
            "import os, sys; print(sys.executable, os.getpid(), sys.is_stack_trampoline_active())"
        )
        with contextlib.suppress(OSError):
            done = subprocess.run(
                [f"python3.{minor}", "-X", "perf", "-c", asked], capture_output=True, text=True,
                env=environment, check=False,
            )  # fmt: skip
            if done.returncode == 0:
                path, pid, is_active = done.stdout.split()
                map_of(int(pid)).unlink(missing_ok=True)
                if is_active == "True":
                    return [path, "-X", "perf"]
    pytest.skip("no Python of 3.12 or later that has perf's trampolines")


def node(directory: Path) -> list[str]:
    path = shutil.which("node")
    if path is None:
        pytest.skip("no node")
    log = f"--logfile={directory}/v8.log"
    return [path, "--perf-basic-prof", "--interpreted-frames-native-stack", log]


def expect_script(stacks: dict[str, int], *functions: str) -> None:
    """Most of 20 MiB is in stacks that have all of these, the outermost first."""

    def has(stack: str) -> bool:
        names = iter(stack.split(";"))
        return all(function in names for function in functions)

    found = sum(size for stack, size in stacks.items() if has(stack))
    assert 15 * MIB < found < 26 * MIB, stacks


def test_a_script_of_python(tmp_path, capsys) -> None:
    command = [*python(), PROGRAMS / "orders.py"]
    with with_map(*command, PYTHONMALLOC="malloc") as pid:
        expect_script(
            stacks_of(pid, tmp_path), "<module>", "main", "Shop.take_orders", "make_order"
        )
        assert main(["profile", str(pid)]) == 0
        rows = [line.split("  ") for line in capsys.readouterr().out.splitlines()]
        found = [" ".join(row).split() for row in rows]
        first = next(i for i, words in enumerate(found) if "make_order" in words)
        assert found[first][-2:] == ["make_order", "orders.py"]
        assert found[first + 1 : first + 4] == [
            ["Shop.take_orders", "orders.py"], ["main", "orders.py"], ["<module>", "orders.py"],
        ]  # fmt: skip


def test_a_script_of_node(tmp_path, capsys) -> None:
    with with_map(*node(tmp_path), PROGRAMS / "orders.js") as pid:
        expect_script(stacks_of(pid, tmp_path), "takeOrders", "makeOrder")
        assert main(["profile", str(pid)]) == 0
        text = " ".join(capsys.readouterr().out.split())
        assert "makeOrder orders.js:5 takeOrders orders.js:10" in text


def test_compiled_methods_of_java(tmp_path) -> None:
    java, jcmd = shutil.which("java"), shutil.which("jcmd")
    if java is None or jcmd is None:
        pytest.skip("no JDK")
    command = [java, "-XX:+PreserveFramePointer", "-Xshare:off", PROGRAMS / "Orders.java"]
    with with_map(*command) as pid:
        asked = subprocess.run(
            [jcmd, str(pid), "Compiler.perfmap"], capture_output=True, text=True, check=False
        )
        if asked.returncode != 0 or not map_of(pid).exists():
            pytest.skip("this JDK writes no map (17 and later do)")
        stacks = stacks_of(pid, tmp_path)
    found = sum(size for stack, size in stacks.items() if ";void Orders.makeOrder();" in stack)
    assert 30 * MIB < found < 110 * MIB, stacks
