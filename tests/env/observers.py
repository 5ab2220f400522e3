# SPDX-License-Identifier: MIT OR Apache-2.0
"""Cases: a program on Terrace that somebody looks at, with gdb, strace or perf."""

import os
import re
import shutil

from harness import Failure, Skip

STEPS = 4000  # more than malloc and free take on any rung once the heap is open
TO_SECOND_CALL = ["-ex", "break stepped", "-ex", "run", "-ex", "continue"]


def need(tool):
    if not shutil.which(tool):
        raise Skip(f"no {tool}")
    return tool


def stay_on_one_cpu():
    """A thread that moves between two steps finds another slot, and may have to open it: more steps than there are."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def gdb(h, setting, *commands):
    """The debugger itself runs on glibc's malloc; the program it starts has the setting."""
    words = [need("gdb"), "-q", "-nx", "-batch", "-ex", "set pagination off"]
    if setting.preload:
        words += ["-ex", f"set environment LD_PRELOAD {setting.preload}"]
    words += [*commands, "--args", h.program("stepped")]
    return h.run(setting, words, stdout=r"(?s).*", stderr=r"(?s).*", preload_variable="UNUSED",
                 before_exec=stay_on_one_cpu)


def under_gdb(h):
    """Breakpoints in malloc and free, and going on, on every rung."""
    for setting in h.settings():
        out = gdb(h, setting, *TO_SECOND_CALL, "-ex", "break malloc", "-ex", "continue", "-ex", "break free", "-ex", "continue",
                  "-ex", "delete", "-ex", "continue")
        if "exited normally" not in out or out.count("Breakpoint") < 4:
            raise Failure(f"{setting.name}: {out!r}")


def steps_through_malloc(h, setting):
    """Whether so many single steps from a call of malloc reach what the program does after it."""
    out = gdb(h, setting, *TO_SECOND_CALL, "-ex", "tbreak puts", "-ex", f"stepi {STEPS}", "-ex", "delete", "-ex", "continue")
    if "exited normally" not in out:
        raise Failure(f"{setting.name}: {out!r}")
    return re.search(r"^Temporary breakpoint \d+, ", out, re.MULTILINE) is not None


def single_steps(h):
    """Each step is an interruption, and a restartable sequence begins anew; so one steps on a rung without them (guide: debugging)."""
    for setting in [h.glibc(), h.terrace("getcpu"), h.terrace("thread")]:
        if not steps_through_malloc(h, setting):
            raise Failure(f"{setting.name}: not through malloc and free in {STEPS} steps")
    if any(steps_through_malloc(h, setting) for setting in h.rungs() if setting.name in ["mm_cid", "cpu_id"]):
        raise Failure("one can step through sequences: the guide is wrong")


def under_strace(h):
    need("strace")
    for setting in h.settings():
        words = ["strace", "-f", "-o", "/dev/null"]
        if setting.preload:
            words += ["-E", f"LD_PRELOAD={setting.preload}"]
        h.run(setting, [*words, h.program("workout"), "5"], preload_variable="UNUSED")


def under_perf(h):
    need("perf")
    if h.execute(h.glibc(), ["perf", "record", "-o", "/dev/null", "true"]).returncode != 0:
        raise Skip("perf can not record here")
    for setting in h.settings():
        h.run(setting, ["perf", "record", "-g", "-F", "5000", "-o", "/dev/null", h.program("workout"), "20"], stderr=r"(?s).*")


ALL = [under_gdb, single_steps, under_strace, under_perf]
