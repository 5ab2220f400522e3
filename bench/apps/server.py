# SPDX-License-Identifier: MIT OR Apache-2.0
"""A server under an allocator: started, waited for, loaded from outside by programs on glibc, looked at, stopped.

The launcher is between this process and the server, so that the values at the end are of the server and of all children
that it waited for, from its start to its end; the peak is the largest process's.
"""

import contextlib
import os
import pwd
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

import psutil
from interleave import Subject, Values
from recipe import refuse_unloaded
from workload import Failed, answers, clean_environment, launcher, ran, reported

START_SECONDS = 30.0
STOP_SECONDS = 30.0
SETTLE_SECONDS = 1.0


class As(TypedDict, total=False):
    user: int
    group: int
    extra_groups: list[int]


def as_user(name: str | None) -> As:
    """What subprocess has to be told for a program to run as somebody else."""
    if name is None:
        return {}
    entry = pwd.getpwnam(name)
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}


@dataclass(frozen=True)
class Service:
    """How a server is run. `answers` is asked until it is true; the signal makes it end with status 0."""

    command: Sequence[str]
    folder: Path
    answers: Callable[[], bool]
    end: signal.Signals = signal.SIGTERM
    user: str | None = None


class Server:
    """A server that runs."""

    def __init__(self, build: Path, subject: Subject, service: Service) -> None:
        self._service = service
        self._report = service.folder / "report"
        self._log = service.folder / "log"
        self._report.unlink(missing_ok=True)
        self._wanted = subject.environment.get("LD_PRELOAD", "")
        self._launcher = self._started(launcher(build, self._report, subject, service.command))

    def _started(self, command: Sequence[str]) -> subprocess.Popen[bytes]:
        try:
            with self._log.open("wb") as log:
                return subprocess.Popen(
                    list(command), cwd=self._service.folder, env=clean_environment(), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                    start_new_session=True, **as_user(self._service.user),
                )
        except OSError as error:  # where a server's user may not go, say
            raise Failed(f"{self._service.command[0]} cannot be started: {error}") from error

    def wait_until_it_answers(self) -> None:
        if not answers(self._launcher, self._service.answers, START_SECONDS):
            raise Failed(f"{self._service.command[0]} does not answer: {self._last_words()}")
        refuse_unloaded(self._log.read_text(errors="replace"))
        maps = Path(f"/proc/{self.pid()}/maps").read_text()
        if missing := [o for o in self._wanted.replace(":", " ").split() if os.path.basename(os.path.realpath(o)) not in maps]:
            raise Failed(f"{self._service.command[0]} runs without {', '.join(missing)}")

    def pid(self) -> int:
        """The launcher's only child."""
        with contextlib.suppress(psutil.NoSuchProcess, IndexError):
            return psutil.Process(self._launcher.pid).children()[0].pid
        raise Failed(f"{self._service.command[0]} has ended: {self._last_words()}")

    def settled_rss(self) -> Values:
        """To be asked when the server has freed everything."""
        time.sleep(SETTLE_SECONDS)
        return {"settled_rss": float(psutil.Process(self.pid()).memory_info().rss)}

    def stop(self) -> Values:
        os.kill(self.pid(), self._service.end)
        try:
            self._launcher.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired as late:
            raise Failed(f"{self._service.command[0]} does not end within {STOP_SECONDS:.0f} s") from late
        status, values = reported(self._report)
        if status != 0:
            raise Failed(f"{self._service.command[0]} ended with {status}: {self._last_words()}")
        return values

    def kill(self) -> None:
        """Whatever is left of it after a failure: the launcher leads a session of its own."""
        if self._launcher.poll() is None:
            os.killpg(self._launcher.pid, signal.SIGKILL)
            self._launcher.wait()

    def _last_words(self) -> str:
        return self._log.read_text(errors="replace").strip()[-200:]


@contextlib.contextmanager
def serving(build: Path, subject: Subject, service: Service) -> Iterator[Server]:
    server = Server(build, subject, service)
    try:
        server.wait_until_it_answers()
        yield server
    finally:
        server.kill()


def load(command: Sequence[str], *, cwd: Path, user: str | None = None, given: str | None = None, timeout: float = 300) -> str:
    """A client of the server, on glibc: what it says."""
    return ran(command, cwd=cwd, input=given, timeout=timeout, **as_user(user)).stdout
