# SPDX-License-Identifier: MIT OR Apache-2.0
"""Whether any thread of a process runs, without stopping it: by /proc/PID/task.

A thread that waits in the kernel writes to no memory. If all threads wait before memory is read and
after it, and none of them has run meanwhile, what was read is of one moment.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from terrace.debug.memory import Thread


@dataclass(frozen=True)
class Waiting:
    """A thread that waits: how often it had been given up a CPU, and where it is."""

    tid: int
    switches: tuple[str, ...]
    pc: int
    sp: int

    @property
    def thread(self) -> Thread:
        """Without its registers, which only who stops it can read."""
        return Thread(self.tid, self.pc, self.sp, np.zeros(0, np.uint64))


def _waiting(task: Path) -> Waiting | None:
    """The switches are read last: a thread that runs after that has one more before it waits."""
    where = (task / "syscall").read_text(encoding="ascii").split()
    if len(where) < 3:
        return None  # it runs
    status = (task / "status").read_text(errors="replace").splitlines()
    switches = tuple(line for line in status if "ctxt_switches" in line)
    return Waiting(int(task.name), switches, int(where[-1], 0), int(where[-2], 0))


def all_waiting(pid: int) -> list[Waiting] | None:
    """All threads, in order; None: one of them runs, or the kernel does not tell."""
    found = []
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            waiting = _waiting(task)
            if waiting is None or not waiting.switches:
                return None
            found.append(waiting)
    except (OSError, ValueError):
        return None
    return sorted(found, key=lambda w: w.tid)
