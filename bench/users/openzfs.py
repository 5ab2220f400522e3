# SPDX-License-Identifier: MIT OR Apache-2.0
"""OpenZFS in user space: ztest does everything at once to a pool of files, with all assertions on."""

import os
import re
import resource
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from program import DEBUGGED, PLAIN, UMEM, WITH, WITHOUT, Results, Setting, Values
from sources import INTEGRATION, unpacked, work_directory
from steps import HEADERS, Library, Step, fresh, make, need
from workload import Failed, clean_environment

ADAPTERS = (INTEGRATION / "openzfs" / "umem.h", INTEGRATION / "openzfs" / "sys" / "kmem.h")
# Where it mixes malloc's blocks with umem_alloc's, which its own header makes one: file, what is there, what takes its place.
EDITS = (
    ("include/sys/zfs_context.h", "#define\tkmem_strdup(s)  strdup(s)", "#define\tkmem_strdup(s)  umem_strdup(s)"),
    ("lib/libzpool/kernel.c", "VERIFY(vasprintf(", "VERIFY(umem_vasprintf("),
    ("module/nvpair/fnvpair.c", "\tfree(pack);", "\tkmem_free(pack, size);"),
)
CONFIGURATION = ("--with-config=user", "--disable-sysvinit", "--disable-systemd", "--disable-pyzfs", "--disable-nls")
CHECK_SECONDS, MEASURED_SECONDS = 120, 30
GRACE_SECONDS = 240  # for the end of a pass, and zdb's look at the pool

# What this version does now and then by itself, on malloc, too: what ztest expects of an attach it has worked out before, and
# the pool has changed meanwhile; who removes a device waits for a thread that trims, and that one for him (openzfs/zfs#14246).
WRONG_EXPECTATION = re.compile(r"^ztest: attach \(.*\) returned \d+, expected \d+$", re.M)
OWN_DEADLOCK = ("vdev_autotrim_stop_wait", "metaslab_group_disable")
STACKS = "stacks when it was ended:"


def edited(text: str, old: str, new: str) -> str:
    """Every occurrence; there has to be one."""
    if old not in text:
        raise Failed(f"the source has no {old!r}")
    return text.replace(old, new)


def calls_in(output: str) -> int:
    """Of all of ztest's tables "Calls Time Function": it prints one at the end of each pass."""
    return sum(int(calls) for calls in re.findall(r"^\s*(\d+)\s+\S+\s+ztest_\w+$", output, re.M))


def outcome(output: str, status: int) -> str:
    """ztest ends with words that count passes, behind what zdb has left on the line."""
    return "passed" if status == 0 and re.search(r"\b\d+ killed, \d+ completed", output) else "failed"


def is_own_fault(log: str) -> bool:
    stacks = log.partition(STACKS)[2]
    is_deadlock = all(function in stacks for function in OWN_DEADLOCK) and "libumem" not in stacks
    return is_deadlock or WRONG_EXPECTATION.search(log) is not None


class OpenZfs:
    name = "openzfs"
    gib = 1.2
    minutes = 25
    counts = "calls of ztest's functions"
    settings = (WITHOUT, WITH, DEBUGGED)

    def needs(self) -> tuple[str, ...]:
        return ("gcc", "make", "perl", "awk")

    def _folder(self, build: str) -> Path:
        return work_directory() / f"openzfs-{build}"

    def _source(self, build: str) -> Path:
        """A tree of its own for libumem: three lines of it are edited."""
        tree = unpacked("openzfs")
        if build == PLAIN:
            return tree
        copy = work_directory() / "openzfs-source-umem"
        if not copy.is_dir():
            scratch = fresh(copy.with_name(f"{copy.name}.copying"))
            shutil.copytree(tree, scratch, symlinks=True, dirs_exist_ok=True)
            for name, old, new in EDITS:
                (scratch / name).write_text(edited((scratch / name).read_text(), old, new))
            scratch.rename(copy)
        return copy

    def build(self, library: Library) -> None:
        need(*self.needs())
        for build in (PLAIN, UMEM):
            source, folder = self._source(build), self._folder(build)
            words: list[str] = []
            if build == UMEM:
                include = [f"-I{INTEGRATION / 'openzfs'}", f"-I{library.include}"]
                words = [f"CC=gcc {' '.join(include)}", f"LIBS={' '.join(library.link())} -lumem"]
            configure = [str(source / "configure"), *CONFIGURATION]
            Step(f"openzfs, {build}: configure", folder, [["nice", "-n", "8", *configure]]).do()
            parts = [make(*words, "-C", part) for part in ("include", "lib", "cmd/ztest", "cmd/zdb")]
            # What was compiled with other headers is compiled again.
            clean = make("-C", "lib", "clean") if build == UMEM else ["true"]
            files = (*ADAPTERS, *HEADERS) if build == UMEM else ()
            Step(f"openzfs, {build}: make", folder, [make("gitrev"), clean, *parts], files).do()

    def _log(self, setting: Setting) -> Path:
        return work_directory() / ("ztest-" + "".join(c if c.isalnum() else "-" for c in setting.name) + ".log")

    def _ztest(self, setting: Setting, seconds: int, *words: str) -> tuple[int, str, float]:
        """Exit status, output, and bytes of the largest process. Its pool is in memory: this is no test of a disk."""
        scratch = fresh(Path("/dev/shm") / f"terrace-ztest-{os.getpid()}")
        program = self._folder(setting.build) / "cmd" / "ztest" / "ztest"
        command = [str(program), "-V", "-V", "-T", str(seconds), "-f", str(scratch), "-s", "256m", *words]
        environment = clean_environment() | setting.environment
        log = self._log(setting)
        try:
            with log.open("wb") as out:
                process = subprocess.Popen(
                    command, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True
                )  # fmt: skip
                status, usage = wait(process, seconds + GRACE_SECONDS, out)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        return status, log.read_text(errors="replace"), usage.ru_maxrss * 1024.0

    def check(self, library: Library, setting: Setting) -> Results:
        """Passes of 20 seconds, most of which end by SIGKILL; zdb looks at the pool after each."""
        status, output, _ = self._ztest(setting, CHECK_SECONDS, "-P", "20")
        return {"ztest": outcome(output, status)}

    def check_again(self, library: Library, setting: Setting, tests: Sequence[str]) -> Results:
        log = self._log(setting).read_text(errors="replace")
        return self.check(library, setting) if is_own_fault(log) else {}

    def measure(self, library: Library, setting: Setting) -> Values:
        words = ("-P", str(MEASURED_SECONDS), "-k", "0")
        status, output, peak = self._ztest(setting, MEASURED_SECONDS, *words)
        if is_own_fault(output):
            status, output, peak = self._ztest(setting, MEASURED_SECONDS, *words)
        if outcome(output, status) != "passed":
            raise Failed(f"ztest ended with {status}: {output.strip()[-300:]}")
        return {"rate": calls_in(output) / MEASURED_SECONDS, "rss": peak}


def wait(process: subprocess.Popen[bytes], seconds: float, log: IO[bytes]) -> tuple[int, resource.struct_rusage]:
    """Exit status, negative for a signal, and what the process and its children used. After `seconds` it is killed."""
    deadline = time.monotonic() + seconds
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            return process.returncode, usage
        if time.monotonic() > deadline:
            write_stacks(process.pid, log)
            os.killpg(process.pid, signal.SIGKILL)
            deadline += GRACE_SECONDS
        time.sleep(0.05)


def write_stacks(session: int, log: IO[bytes]) -> None:
    """Of all threads of its youngest process, if there is a gdb."""
    processes = subprocess.run(["pgrep", "-s", str(session)], capture_output=True, text=True, check=False).stdout.split()
    if not processes or shutil.which("gdb") is None:
        return
    log.write(f"\n{STACKS}\n".encode())
    log.flush()
    command = ["gdb", "-p", max(processes, key=int), "-batch", "-ex", "set pagination off", "-ex", "thread apply all bt"]
    subprocess.run(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.DEVNULL, timeout=120, check=False)
