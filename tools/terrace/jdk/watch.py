# SPDX-License-Identifier: MIT OR Apache-2.0
"""`terrace jdk test --suite watch`: what jcmd, counters and JFR tell of a running program."""

import re
from collections.abc import Callable
from pathlib import Path

from terrace.jdk.looks import Counts, look_at, run_command
from terrace.jdk.session import HAB, TLAB_4K, Session, Setting, Suite, usable

BY_THREAD, BY_CORE = "thread", "core"
_LEVELS = (*HAB, "-XX:HABLevels=core+llc+node")
SETTINGS = {
    Setting("off", (), ()): "",
    Setting("TLABs of 4 KiB", TLAB_4K): BY_THREAD,
    Setting("core+llc+node, TLABs of 4 KiB", TLAB_4K, _LEVELS): BY_THREAD,
    Setting("by core", (), (*HAB, "-XX:HABAssociation=core")): BY_CORE,
}
_HEAP = ("-Xmx256m", "-Xmn64m")
_EVENT = "jdk.HierarchicalAllocationBuffers"


def wrong_in_info(answer: str, association: str) -> str:
    """Of GC.hab_info: the association, and a row of cores' buffers that were refilled."""
    if not association:
        return "" if "There are no hierarchical allocation buffers" in answer else answer
    row = re.search(r"^core +\d+ +\d+ +([1-9]\d*) ", answer, re.MULTILINE)
    return "" if row and f"from buffers by {association}" in answer else answer


def wrong_in_counters(answer: str, association: str) -> str:
    """Of PerfCounter.print, sun.gc.hab.*"""
    found = dict(re.findall(r"^sun\.gc\.hab\.(\S+)=(\d+)$", answer, re.MULTILINE))
    if not association:
        return "" if not found else str(found)
    by_core = str(int(association == BY_CORE))
    right = found.get("byCore") == by_core and int(found.get("core.refills", "0")) > 0
    return "" if right else f"counters: {found}"


def wrong_in_events(answer: str, association: str) -> str:
    """Of `jfr print`."""
    if not association:
        return "" if _EVENT not in answer else answer
    refills = [int(n) for n in re.findall(r"refills = (\d+)", answer)]
    right = f'association = "{association}"' in answer and max(refills, default=0) > 0
    return "" if right else answer


def _jcmd(image: Path, pid: int, *words: str) -> str:
    return run_command([str(image / "bin" / "jcmd"), str(pid), *words])


def _info(image: Path, pid: int, _: Path) -> str:
    return _jcmd(image, pid, "GC.hab_info")


def _counters(image: Path, pid: int, _: Path) -> str:
    _jcmd(image, pid, "GC.run")  # they are brought up to date at collections
    return _jcmd(image, pid, "PerfCounter.print")


def _events(image: Path, pid: int, directory: Path) -> str:
    recording = directory / "watch.jfr"
    recording.unlink(missing_ok=True)
    said = _jcmd(image, pid, "JFR.start", "name=watch")
    said += _jcmd(image, pid, "GC.run")
    said += _jcmd(image, pid, "JFR.dump", "name=watch", f"filename={recording}")
    if not recording.exists():
        return said
    return run_command([str(image / "bin" / "jfr"), "print", "--events", _EVENT, str(recording)])


LOOKS: dict[str, tuple[Callable[[Path, int, Path], str], Callable[[str, str], str]]] = {
    "jcmd": (_info, wrong_in_info),
    "counters": (_counters, wrong_in_counters),
    "JFR": (_events, wrong_in_events),
}


def run(session: Session) -> Suite:
    """The installed JDK is not asked: it has no buffers."""
    suite = Suite("watch", session.level)

    def wrong(look: str, setting: Setting, pid: int, _: Counts) -> str:
        answer, wrong_in = LOOKS[look]
        return wrong_in(answer(session.image, pid, session.directory), SETTINGS[setting])

    settings = usable(SETTINGS, session.image, suite)
    return look_at(session, suite, settings, _HEAP, list(LOOKS), wrong)
