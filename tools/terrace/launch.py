# SPDX-License-Identifier: MIT OR Apache-2.0
"""Starts a program and stands in for it: same stdin, stdout, stderr, environment, signals and end.

The program stays in this process's group, so a key typed at the terminal reaches it without help;
signals that somebody sends to this process are handed on; when it stops, this process stops.
"""

import errno
import os
import resource
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NoReturn, Protocol

from terrace.errors import TerraceError

# Raised by what a process does itself, or by its use of the terminal: not meant for the program.
_OWN = {
    signal.SIGSEGV,
    signal.SIGBUS,
    signal.SIGFPE,
    signal.SIGILL,
    signal.SIGTRAP,
    signal.SIGABRT,
    signal.SIGSYS,
    signal.SIGPIPE,
    signal.SIGTTIN,
    signal.SIGTTOU,
    signal.SIGKILL,
    signal.SIGSTOP,
}
_TAKEN = {s for s in signal.valid_signals() if s not in _OWN}

# What Python sets to ignored at its start; the program gets the default back.
_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)

NOT_FOUND = 127
NOT_EXECUTABLE = 126


@dataclass(frozen=True)
class Ending:
    """How a program ended: its pid, and either an exit status or the signal that killed it."""

    pid: int
    status: int = 0
    signal: int = 0


class Tracer(Protocol):
    """Who traces the program by ptrace."""

    def attach(self, pid: int) -> None: ...

    def stopped(self, pid: int, status: int) -> bool:
        """Whether it was stopped for the tracer only, and goes on."""


def original_environment() -> dict[bytes, bytes]:
    """The environment as this process got it: Python itself adds LC_CTYPE in the C locale."""
    try:
        with open("/proc/self/environ", "rb") as file:
            entries = file.read().split(b"\0")
    except OSError:
        return dict(os.environb)
    return {key: value for key, mark, value in (entry.partition(b"=") for entry in entries) if mark}


def _execute(arguments: list[str], environment: Mapping[bytes, bytes]) -> NoReturn:
    """In place of this process. Raises OSError."""
    program = arguments[0]
    try:
        os.execvpe(program, arguments, environment)
    except OSError as error:
        if error.errno != errno.ENOEXEC:
            raise
        # A script without #!: a shell would run it, and so does execvp().
        import shutil

        found = shutil.which(program) or program
        os.execve("/bin/sh", ["sh", found, *arguments[1:]], environment)


def _become(
    arguments: list[str],
    environment: Mapping[bytes, bytes],
    mask: set[int],
    gate: int,
    failure: int,
) -> NoReturn:
    """The program, as soon as the other end of `gate` is closed; its errno to `failure` if not."""
    try:
        os.read(gate, 1)
        for number in signal.valid_signals():
            if number in _IGNORED_BY_PYTHON or callable(signal.getsignal(number)):
                signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        _execute(arguments, environment)
    except OSError as error:
        os.write(failure, str(error.errno).encode())
    finally:
        os._exit(NOT_FOUND)


def _refusal(program: str, number: int) -> TerraceError:
    if number not in (errno.ENOENT, errno.ENOTDIR):
        return TerraceError(f"{program}: {os.strerror(number)}", NOT_EXECUTABLE)
    why = "there is no such file" if "/" in program else "not found on the PATH"
    if "/" in program and os.path.exists(program):
        why = "its interpreter is missing"
    return TerraceError(f"{program}: {why}", NOT_FOUND)


def _follow(pid: int, tracer: Tracer | None) -> Ending:
    """Until the program ends: hands signals on, stops and continues with it."""
    while True:
        # A program that is traced may be stopped without a signal that tells: looked at each second.
        event = signal.sigtimedwait(_TAKEN, 1) if tracer else signal.sigwaitinfo(_TAKEN)
        if event is not None and event.si_signo != signal.SIGCHLD:
            # si_code > 0 comes from the kernel: the terminal told the whole group. What the program
            # sent to its group it has got as well.
            if event.si_code <= 0 and event.si_pid != pid and event.si_signo != signal.SIGCONT:
                os.kill(pid, event.si_signo)
            continue
        done, status = os.waitpid(pid, os.WNOHANG | os.WUNTRACED)
        if done != pid:
            continue
        if os.WIFSTOPPED(status):
            if tracer is not None and tracer.stopped(pid, status):
                continue
            os.kill(os.getpid(), signal.SIGSTOP)
            os.kill(pid, signal.SIGCONT)
        elif os.WIFSIGNALED(status):
            return Ending(pid, signal=os.WTERMSIG(status))
        else:
            return Ending(pid, status=os.WEXITSTATUS(status))


def launch(
    arguments: list[str], environment: Mapping[bytes, bytes], tracer: Tracer | None = None
) -> Ending:
    """Runs the program to its end. Raises TerraceError 126 or 127 when it can not be started."""
    if signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # else the kernel throws the status away
    # Blocked until the end of this process: none is lost, none ends us before the program.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, _TAKEN)
    gate, failure = os.pipe(), os.pipe()  # closed by exec
    pid = os.fork()
    if pid == 0:
        os.close(gate[1])
        _become(arguments, environment, {int(s) for s in mask}, gate[0], failure[1])
    os.close(failure[1])
    try:
        if tracer is not None:
            tracer.attach(pid)  # while it waits: not an instruction of the program is missed
    except BaseException:
        os.kill(pid, signal.SIGKILL)
        raise
    os.close(gate[1])
    ending = _follow(pid, tracer)
    with open(failure[0], "rb") as file:
        number = file.read()
    if number:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        raise _refusal(arguments[0], int(number))
    return ending


def end_like(ending: Ending) -> int:
    """The exit status to end with; dies of the same signal if the program did."""
    if not ending.signal:
        return ending.status
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # one core file is enough: the program's
    if ending.signal not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(ending.signal, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {ending.signal})
    os.kill(os.getpid(), ending.signal)
    return 128 + ending.signal
