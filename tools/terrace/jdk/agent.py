# SPDX-License-Identifier: MIT OR Apache-2.0
"""`terrace jdk test --suite agent`: jhsdb counts what a program keeps, in its process or a core."""

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

from terrace.jdk.looks import Counts, look_at, run_command
from terrace.jdk.session import HAB, TLAB_4K, Session, Setting, Suite, usable
from terrace.messages import say

SETTINGS = (
    Setting("TLABs of 4 KiB", TLAB_4K),
    Setting("no TLABs", ("-XX:-UseTLAB",)),
    Setting("core+llc+node, TLABs of 4 KiB", TLAB_4K, (*HAB, "-XX:HABLevels=core+llc+node")),
    Setting("restartable, TLABs of 4 KiB", TLAB_4K, (*HAB, "-XX:+HABUseRestartableSequences")),
    Setting("by core", (), (*HAB, "-XX:HABAssociation=core")),
)
# No collection happens, so all objects lie where the buffers do.
_HEAP = ("-Xmx256m", "-Xmn128m")

Look = Callable[[Path, int, Path], str]


def may_attach() -> bool:
    """Whether a process may be looked at that is no child (Yama)."""
    try:
        scope = int(Path("/proc/sys/kernel/yama/ptrace_scope").read_text(encoding="ascii"))
    except (OSError, ValueError):
        scope = 0
    return scope == 0 or (scope < 3 and os.geteuid() == 0)


# Of what `jhsdb jmap --histo` prints: number, objects, bytes, class.
_ROW = re.compile(r"^\s*\d+:\s+(\d+)\s+\d+\s+(\S+)$", re.MULTILINE)


def difference(expected: Counts, answer: str) -> str:
    """What is wrong with the answer, "" if nothing."""
    rest = _ROW.sub("", answer)
    if "Exception" in rest:
        return rest
    found = {name: int(count) for count, name in _ROW.findall(answer)}
    others = {name: found.get(name, 0) for name in expected}
    wrong = (f"{name}: {others[name]} instead of {expected[name]}" for name in expected)
    return "" if others == expected else "\n".join(wrong)


def _histogram(image: Path, *where: str) -> str:
    return run_command([str(image / "bin" / "jhsdb"), "jmap", "--histo", *where])


def _process(image: Path, pid: int, _: Path) -> str:
    return _histogram(image, "--pid", str(pid))


def _core_file(image: Path, pid: int, directory: Path) -> str:
    """A core file is taken, looked at and removed: it is as large as the heap."""
    core = directory / f"core.{pid}"
    made = run_command(["gcore", "-o", str(directory / "core"), str(pid)])
    if not core.exists():
        return f"Exception: gcore: {made}"
    try:
        return _histogram(image, "--exe", str(image / "bin" / "java"), "--core", str(core))
    finally:
        core.unlink()


def _looks(suite: Suite) -> dict[str, Look]:
    """Ways to look at a heap; a note says why there are fewer."""
    if not may_attach():
        suite.notes.append("kernel.yama.ptrace_scope keeps jhsdb from other processes")
        return {}
    if not shutil.which("gcore"):
        suite.notes.append("gcore (package gdb) is not there: core files are left out")
        return {"process": _process}
    return {"process": _process, "core file": _core_file}


def run(session: Session) -> Suite:
    """The installed JDK is not asked: the program knows."""
    suite = Suite("agent", session.level)
    settings = usable(SETTINGS, session.image, suite)
    looks = _looks(suite)
    for note in suite.notes:
        say(note, always=True)

    def wrong(look: str, _: Setting, pid: int, expected: Counts) -> str:
        return difference(expected, looks[look](session.image, pid, session.directory))

    return look_at(session, suite, settings, _HEAP, list(looks), wrong)
