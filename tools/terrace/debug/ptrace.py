# SPDX-License-Identifier: MIT OR Apache-2.0
"""Stops the threads of a process and reads their registers: ptrace(2) by ctypes.

A stop that was asked for with PTRACE_SEIZE and PTRACE_INTERRUPT sends no signal. Most system calls
that it interrupts are resumed; some fail with EINTR: docs/guide/debugging.md names them.
"""

import contextlib
import ctypes
import errno
import os
import platform
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from terrace.debug.memory import Thread
from terrace.errors import TerraceError

_SEIZE, _INTERRUPT, _DETACH, _GETREGSET, _CONT = 0x4206, 0x4207, 17, 0x4204, 7
_LISTEN, _TRACE_EXEC, _TRACE_EXIT = 0x4208, 0x10, 0x40
_EVENT_STOP = 128
_WALL = 0x40000000
_PRSTATUS, _FLOATING, _X86_XSTATE, _ARM_TLS = 1, 2, 0x202, 0x401

# By machine: which of the general registers are the program counter, the stack pointer and the
# thread pointer. aarch64's last is no general one: it comes behind them.
_REGISTERS = {"x86_64": (16, 19, 21), "aarch64": (32, 31, 34)}

_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
_libc.ptrace.restype = ctypes.c_long


class _Vector(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


def _ptrace(request: int, tid: int, address: int = 0, data: int = 0) -> None:
    if _libc.ptrace(request, tid, address, data) == -1:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def refusal(pid: int) -> TerraceError:
    """Why nothing may be read."""
    return TerraceError(
        f"process {pid} may not be read: that needs the rights of ptrace, so the same user and "
        "/proc/sys/kernel/yama/ptrace_scope 0, or CAP_SYS_PTRACE (root), and no other debugger"
    )


def seize_until_exit(pid: int) -> None:
    """The process goes on; it stops at each exec, and its first thread at its exit.

    Raises OSError.
    """
    _ptrace(_SEIZE, pid, 0, _TRACE_EXEC | _TRACE_EXIT)


def go_on(tid: int, signal_number: int = 0) -> None:
    """With a signal that it has been stopped for."""
    with contextlib.suppress(OSError):
        _ptrace(_CONT, tid, 0, signal_number)


def listen(tid: int) -> None:
    """It stays stopped, as without a tracer."""
    with contextlib.suppress(OSError):
        _ptrace(_LISTEN, tid)


def thread_of(tid: int, general: bytes, others: bytes = b"") -> Thread:
    """Of what the kernel says of the registers: NT_PRSTATUS's general ones, and any more."""
    machine = platform.machine()
    if machine not in _REGISTERS:
        raise TerraceError(f"the registers of {machine} are not known here")
    pc, sp, tp = _REGISTERS[machine]
    words = np.frombuffer(general[: len(general) // 8 * 8], np.uint64)
    more = np.frombuffer(others[: len(others) // 8 * 8], np.uint64)
    thread_pointer = int(words[tp]) if tp < len(words) else 0
    every = np.concatenate([words, more])
    return Thread(tid, int(words[pc]), int(words[sp]), every, thread_pointer)


class Stopped:
    """The threads of a process; leave() lets them run again."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self.since = time.monotonic()  # it began to stand still
        self._pending: dict[int, int] = {}  # signals that arrived as a thread was stopped

    def stop(self) -> None:
        """All threads, also those that others start meanwhile."""
        while True:
            fresh = [tid for tid in self._tasks() if tid not in self._pending]
            if not fresh:
                break
            for tid in fresh:
                self._seize(tid)
            self._wait_for([tid for tid in fresh if tid in self._pending])
        if not self._pending:
            raise TerraceError(f"process {self._pid} has ended")

    def again(self, seconds: float, tids: list[int] | None) -> None:
        """Lets some threads run for a moment; None: all of them."""
        chosen = [tid for tid in self._pending if tids is None or tid in tids]
        for tid in chosen:
            with contextlib.suppress(OSError):
                _ptrace(_CONT, tid, 0, self._pending[tid])
            self._pending[tid] = 0
        time.sleep(seconds)
        if tids is None:
            self.since = time.monotonic()
        for tid in chosen:
            with contextlib.suppress(OSError):
                _ptrace(_INTERRUPT, tid)
        self._wait_for(chosen)
        self.stop()

    def threads(self) -> list[Thread]:
        found = []
        for tid in self._pending:
            with contextlib.suppress(OSError):
                general, others = self._registers(tid, _PRSTATUS), b""
                for kind in (_FLOATING, _X86_XSTATE):
                    with contextlib.suppress(OSError):
                        others = self._registers(tid, kind)
                with contextlib.suppress(OSError):
                    general += self._registers(tid, _ARM_TLS)
                found.append(thread_of(tid, general, others))
        return found

    def leave(self) -> None:
        for tid, pending in self._pending.items():
            with contextlib.suppress(OSError):
                _ptrace(_DETACH, tid, 0, pending)
        self._pending.clear()

    def _tasks(self) -> list[int]:
        try:
            return sorted(int(p.name) for p in Path(f"/proc/{self._pid}/task").iterdir())
        except OSError:
            return []

    def _seize(self, tid: int) -> None:
        try:
            _ptrace(_SEIZE, tid)
        except OSError as error:
            if error.errno == errno.ESRCH:
                return  # it has ended
            raise refusal(self._pid) from None
        self._pending[tid] = 0
        with contextlib.suppress(OSError):
            _ptrace(_INTERRUPT, tid)

    def _wait_for(self, tids: list[int]) -> None:
        for tid in tids:
            try:
                _, status = os.waitpid(tid, _WALL)
            except ChildProcessError:
                status = 0
            if not os.WIFSTOPPED(status):
                self._pending.pop(tid, None)
            elif status >> 16 != _EVENT_STOP and os.WSTOPSIG(status) != signal.SIGTRAP:
                self._pending[tid] = os.WSTOPSIG(status)  # it is delivered when the thread goes on

    def _registers(self, tid: int, kind: int) -> bytes:
        room = ctypes.create_string_buffer(16384)
        vector = _Vector(ctypes.addressof(room), len(room))
        _ptrace(_GETREGSET, tid, kind, ctypes.addressof(vector))
        return room.raw[: vector.length]


@contextlib.contextmanager
def stopped(pid: int) -> Iterator[Stopped]:
    """The process stands still inside of this, and goes on whatever happens."""
    process = Stopped(pid)
    try:
        process.stop()
        yield process
    finally:
        process.leave()
