# SPDX-License-Identifier: MIT OR Apache-2.0
"""Names of code that a process makes at run time: the map that CPython, Node.js and the JVM write.

perf's convention: /tmp/perf-PID.map has a line for each piece of code, with its start and its
size in hexadecimal, and its name. Code may lie where other code was: the last line counts.
"""

import contextlib
import os
import re
import stat
import time
from pathlib import Path

import numpy as np

from terrace.debug.layout import Ints
from terrace.debug.sampled.frames import Line

# py::function:file of CPython; JS:*function file:line:column of V8, the line that defines it.
_PYTHON = re.compile(r"(?P<function>py::[^:]*):(?P<file>.*)")
_SCRIPT = re.compile(
    r"(?:JS|LazyCompile|Function|Eval|Script):[~^*+]?"
    r"(?P<function>\S*) (?P<file>.+):(?P<line>\d+):\d+"
)
_TRAMPOLINE = "py::"
_LONGEST_BYTES = 1 << 30


def line_of(name: str) -> Line:
    """A name with its parts apart, where it is of a known form."""
    if python := _PYTHON.fullmatch(name):
        return Line(python["function"].removeprefix(_TRAMPOLINE), python["file"])
    if script := _SCRIPT.fullmatch(name):
        return Line(script["function"] or "(anonymous)", script["file"], int(script["line"]))
    return Line(name)


class PerfMap:
    """Of one process, as it was when it was read."""

    def __init__(self, text: str = "") -> None:
        rows = []
        for line in text.splitlines():
            start, size, name = (*line.split(" ", 2), "", "")[:3]
            with contextlib.suppress(ValueError):  # a line may be cut short
                rows.append((int(start, 16), int(size, 16), name))
        self._starts = np.array([row[0] for row in rows], np.uint64)
        self._ends = self._starts + np.array([row[1] for row in rows], np.uint64)
        self._names = [row[2] for row in rows]

    def name(self, address: int) -> str | None:
        """Of the code at an address."""
        at = np.uint64(max(address, 0))  # what seems to be a return address may be 0
        found: Ints = np.flatnonzero((self._starts <= at) & (at < self._ends))
        return self._names[int(found[-1])] if len(found) else None

    def is_trampoline(self, address: int) -> bool:
        """Code by which CPython calls its interpreter for one function."""
        return (self.name(address) or "").startswith(_TRAMPOLINE)


def _read(path: Path, owners: set[int], since: float, until: float) -> PerfMap | None:
    """Everybody may write to /tmp: a file of somebody else, or of another time, is not taken."""
    with contextlib.suppress(OSError):
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(file, encoding="utf-8", errors="replace") as text:
            found = os.fstat(file)
            if (
                stat.S_ISREG(found.st_mode)
                and found.st_uid in owners
                and since <= found.st_mtime <= until
            ):
                return PerfMap(text.read(_LONGEST_BYTES))
    return None


def of_process(pid: int) -> PerfMap:
    """In the process' own /tmp, by the number that it has itself: both may be a container's."""
    proc = Path(f"/proc/{pid}")
    with contextlib.suppress(OSError, LookupError, ValueError):
        status = dict(line.split(":\t", 1) for line in (proc / "status").read_text().splitlines())
        ticks = int((proc / "stat").read_text().rpartition(")")[2].split()[19])
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
        path = proc / "root/tmp" / f"perf-{status['NSpid'].split()[-1]}.map"
        owners = {0, int(status["Uid"].split()[1])}
        return _read(path, owners, time.time() - age - 1, float("inf")) or PerfMap()
    return PerfMap()


def of_core(core: Path, pid: int) -> PerfMap:
    """Beside the core file, or still in /tmp."""
    name = f"perf-{pid}.map"
    with contextlib.suppress(OSError):
        written = core.stat()
        owners = {0, os.getuid(), written.st_uid}
        for directory, until in ((core.parent, float("inf")), (Path("/tmp"), written.st_mtime)):
            found = _read(directory / name, owners, 0, until)
            if found is not None:
                return found
    return PerfMap()
