# SPDX-License-Identifier: MIT OR Apache-2.0
"""Cases: system calls that are refused, or done without effect, from the start or from some moment on."""

import re
import shutil
import sys

from harness import Failure, Skip


def rung_in(out):
    return re.search(r"^rung (\S+)$", out, re.MULTILINE).group(1)


def denied(h, setting, error, calls, expected, **how):
    command = [h.program("deny"), error, calls, h.program("workout"), "10"]
    environment = {name: value for name, value in how.items() if name.isupper()}
    result = h.execute(setting, command, preload_variable="DENY_PRELOAD", **environment)
    if result.returncode == 77:
        raise Skip("no seccomp here")
    out = h.run(setting, command, preload_variable="DENY_PRELOAD", **how)
    if expected and setting.preload and rung_in(out) not in expected:
        raise Failure(f"{calls} -> {error}: rung {rung_in(out)}, not one of {expected}")


def sandbox_without_rseq(h):
    without_sequences = ["getcpu", "thread"]
    for error in ["ENOSYS", "EPERM"]:
        for calls in ["rseq", "membarrier", "rseq,membarrier", "rseq,getcpu,membarrier"]:
            denied(h, h.glibc(), error, calls, [])
            denied(h, h.terrace(), error, calls, without_sequences)
    for rung in ["mm_cid", "cpu_id"]:
        denied(h, h.terrace(rung), "ENOSYS", "rseq", without_sequences, stderr=rf"terrace: TERRACE_RUNG {rung}: [^\n]+\n")
    for rung in ["getcpu", "thread"]:
        denied(h, h.terrace(rung), "ENOSYS", "rseq", [rung])


def sandbox_that_kills(h):
    """Who must not even ask: a forced rung without sequences asks neither for rseq nor for membarrier."""
    for rung in ["getcpu", "thread"]:
        denied(h, h.terrace(rung), "KILL", "membarrier", [rung])
        denied(h, h.terrace(rung), "KILL", "rseq,membarrier", [rung], GLIBC_TUNABLES="glibc.pthread.rseq=0")
    denied(h, h.terrace(), "KILL", "rseq", ["getcpu"], GLIBC_TUNABLES="glibc.pthread.rseq=0")
    denied(h, h.terrace(), "KILL", "getrandom", [])
    if h.execute(h.glibc(), [h.program("deny"), "KILL", "clock_gettime", h.program("workout"), "10"]).returncode == 0:
        denied(h, h.terrace(), "KILL", "clock_gettime", [])  # the vDSO tells the time


def entered_later(h, setting, action, calls, threads):
    command = [h.program("late_sandbox"), action, calls, threads]
    if h.execute(setting, command).returncode == 77:
        raise Skip("no seccomp here")
    h.run(setting, command, TERRACE_DECAY_MS="1")


def sandbox_entered_later(h):
    """Maintenance comes by all the time, with a decay of 1 ms."""
    for threads in ["0", "3"]:
        for setting in h.settings():
            entered_later(h, setting, "KILL", "membarrier", threads)
        for action in ["EPERM", "ENOSYS"]:
            for calls in ["membarrier", "madvise", "munmap", "mremap", "membarrier,madvise,munmap,mremap,getrandom"]:
                entered_later(h, h.terrace(), action, calls, threads)
        for action in ["EINVAL", "ENOMEM"]:
            entered_later(h, h.terrace(), action, "madvise,munmap", threads)


def sandbox_that_knows_little(h):
    """All that Terrace calls after its start, beside what libc's threads need; docs/guide/system-calls.md has the list."""
    for setting in h.rungs():
        entered_later(h, setting, "ONLY", "mmap,munmap,mremap,madvise,futex", "0")
        entered_later(h, setting, "ONLY", "mmap,munmap,mremap,madvise,futex,sched_yield,prctl", "3")


REFUSALS = ["ENOSYS", "EPERM", "EINVAL", "ENOMEM"]


def sandbox_without_other_calls(h):
    calls = ["getrandom", "sched_getaffinity", "prctl", "mremap", "madvise", "munmap", "madvise,munmap,mremap,prctl,sched_getaffinity"]
    for call in calls:
        for error in REFUSALS:
            denied(h, h.terrace(), error, call, [])
    for setting in h.settings():
        denied(h, setting, "EPERM", "munmap,madvise", [])


def programs_without_memory_calls(h):
    """Whatever is refused, they end as with glibc."""
    for program in [["ls", "/"], ["perl", "-e", "print 1"], [sys.executable, "-c", "pass"]]:
        if not shutil.which(program[0]):
            continue
        for calls in ["munmap", "madvise", "mremap", "munmap,madvise,mremap", "mprotect", "futex"]:
            for error in REFUSALS:
                command = [h.program("deny"), error, calls, *program]
                expected = h.execute(h.glibc(), command).returncode
                if expected == 77:
                    raise Skip("no seccomp here")
                h.run(h.terrace(), command, status=expected, stdout=r"(?s).*", stderr=r"(?s).*", preload_variable="DENY_PRELOAD")


def requests_without_effect(h):
    """madvise(MADV_DONTNEED) says that it is done, and does nothing: what was free before is not zero."""
    denied(h, h.glibc(), "IGNORED", "madvise", [])
    for setting in h.rungs():
        denied(h, setting, "IGNORED", "madvise", [])


def locked_memory(h):
    """madvise(MADV_DONTNEED) fails on locked pages; what it did not clear is not zero."""
    command = [h.program("workout"), "30", "2", "locked"]
    if h.execute(h.glibc(), command).returncode == 77:
        raise Skip("mlockall is not allowed here")
    for setting in h.settings():
        h.run(setting, command)
        for error, calls in [("EINVAL", "dontneed_locked"), ("EPERM", "madvise"), ("EINVAL", "madvise,munmap")]:
            h.run(setting, [h.program("deny"), error, calls, *command], preload_variable="DENY_PRELOAD")


ALL = [sandbox_without_rseq, sandbox_that_kills, sandbox_entered_later, sandbox_that_knows_little, sandbox_without_other_calls,
       programs_without_memory_calls, requests_without_effect, locked_memory]
