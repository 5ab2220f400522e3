# SPDX-License-Identifier: MIT OR Apache-2.0
"""A live process. It is stopped for a copy only; everything else reads it as it runs."""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import mmap
import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import numpy.typing as npt

from terrace.debug import ptrace
from terrace.debug.memory import Bytes, Copy, Mapping, Memory, Segment, Thread, UnreadableError
from terrace.debug.target import (
    OF_32_BITS,
    Capture,
    Described,
    Range,
    Select,
    Target,
    described,
    is_of_32_bits,
)
from terrace.debug.waiting import all_waiting
from terrace.errors import TerraceError
from terrace.report.cells import human_bytes

PAGE = os.sysconf("SC_PAGE_SIZE")
_POPULATE_WRITE = 23  # madvise, since Linux 5.14
_VECTORS = 1024  # IOV_MAX
_BATCH = 16 << 20
_RESIDENT = 62  # bits 62 and 63 of a page's entry in pagemap: it is swapped, it is present
_GUARD = 1 << 58  # it is a guard (MADV_GUARD_INSTALL, since Linux 6.15), which looks like swapped
_SPARSE = 1 << 16  # longer requests look which pages there are
# Seconds: to find all threads outside of Terrace; that those inside go on, at first and at most.
_PATIENCE, _A_MOMENT, _LONGEST_MOMENT = 1.0, 0.0005, 0.05
_ROUNDS = 16
_LOOKS = 3  # for a moment in which no thread runs
_TIMES_AS_MUCH = 2  # memory that findleaks takes, of what it copies

Runs = npt.NDArray[np.uint64]  # a row each: address, bytes

_libc = ctypes.CDLL(None, use_errno=True)
_libc.process_vm_readv.restype = ctypes.c_ssize_t


def read_maps(text: str) -> list[Mapping]:
    """Of /proc/PID/maps."""
    mappings = []
    for line in text.splitlines():
        addresses, permissions, offset, _, _, *path = line.split(None, 5)
        start, _, end = addresses.partition("-")
        name = path[0].removesuffix(" (deleted)") if path else ""
        mappings.append(Mapping(int(start, 16), int(end, 16), permissions, int(offset, 16), name))
    return mappings


class Pages:
    """Which pages of a process hold anything: reading others would make the kernel map zeroes."""

    def __init__(self, pid: int) -> None:
        self._file: int | None = None
        with contextlib.suppress(OSError):
            self._file = os.open(f"/proc/{pid}/pagemap", os.O_RDONLY)

    def runs(self, start: int, end: int) -> Runs:
        """The resident parts of [start, end), which begins and ends with a page."""
        count = (end - start) // PAGE
        raw = b""
        if self._file is not None:
            with contextlib.suppress(OSError):
                raw = os.pread(self._file, count * 8, start // PAGE * 8)
        if len(raw) != count * 8:
            return np.array([[start, end - start]], np.uint64)
        entries = np.frombuffer(raw, np.uint64)
        there = (entries >> np.uint64(_RESIDENT) != 0) & (entries & np.uint64(_GUARD) == 0)
        edges = np.flatnonzero(np.diff(there.astype(np.int8), prepend=0, append=0))
        first, last = edges[::2].astype(np.uint64), edges[1::2].astype(np.uint64)
        page = np.uint64(PAGE)
        return np.stack([np.uint64(start) + first * page, (last - first) * page], axis=1)


class LiveMemory(Memory):
    """Read while the process runs: each number was true at some moment."""

    def __init__(self, pid: int, pages: Pages) -> None:
        try:
            self._file = os.open(f"/proc/{pid}/mem", os.O_RDONLY)
        except PermissionError:
            raise ptrace.refusal(pid) from None
        except OSError:
            raise TerraceError(f"there is no process {pid}") from None
        self._pages = pages

    def read(self, address: int, size: int) -> bytes:
        try:
            data = os.pread(self._file, size, address)
        except (OSError, OverflowError):
            raise UnreadableError(address) from None
        if len(data) != size:
            raise UnreadableError(address + len(data))
        return data

    def sparse(self, address: int, size: int) -> Bytes:
        if size < _SPARSE:
            return super().sparse(address, size)
        whole = np.zeros(size, np.uint8)
        start, end = address // PAGE * PAGE, -(-(address + size) // PAGE) * PAGE
        for at, length in self._pages.runs(start, end).tolist():
            low, high = max(at, address), min(at + length, address + size)
            with contextlib.suppress(UnreadableError):
                data = np.frombuffer(self.read(low, high - low), np.uint8)
                whole[low - address : high - address] = data
        return whole


class _Room:
    """Where a copy goes: its pages are there before the process is stopped."""

    def __init__(self, size: int) -> None:
        self._map = mmap.mmap(-1, max(size, PAGE), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        with contextlib.suppress(OSError, ValueError):
            self._map.madvise(mmap.MADV_HUGEPAGE)
        with contextlib.suppress(OSError, ValueError):
            self._map.madvise(_POPULATE_WRITE)
        self.bytes: Bytes = np.frombuffer(self._map, np.uint8)


def _pieces(runs: Runs) -> Runs:
    """The same with no run longer than a batch."""
    long = runs[:, 1] > np.uint64(_BATCH)
    if not long.any():
        return runs
    parts = []
    for start, size in runs[long].tolist():
        offsets = np.arange(0, size, _BATCH, dtype=np.uint64)
        lengths = np.minimum(np.uint64(size) - offsets, np.uint64(_BATCH))
        parts.append(np.stack([np.uint64(start) + offsets, lengths], axis=1))
    joined = np.concatenate([runs[~long], *parts])
    return joined[np.argsort(joined[:, 0])]


def _copy_batch(pid: int, runs: Runs, into: int) -> None:
    """Runs one behind the other; what can not be read stays zero."""
    vectors = np.ascontiguousarray(runs)
    total = int(vectors[:, 1].sum())
    local = np.array([into, total], np.uint64)
    done = _libc.process_vm_readv(
        ctypes.c_long(pid),
        ctypes.c_void_p(local.ctypes.data), ctypes.c_ulong(1),
        ctypes.c_void_p(vectors.ctypes.data), ctypes.c_ulong(len(vectors)),
        ctypes.c_ulong(0),
    )  # fmt: skip
    if done == total:
        return
    if len(vectors) > 1:
        for run in vectors:
            _copy_batch(pid, run[None, :], into)
            into += int(run[1])
    elif total > PAGE:  # a page somewhere in it is not to be had
        start = int(vectors[0, 0])
        for at in range(0, total, PAGE):
            _copy_batch(pid, np.array([[start + at, min(PAGE, total - at)]], np.uint64), into + at)


def _batches(runs: Runs) -> list[tuple[int, int]]:
    """Slices of rows: as many as a call takes, and not too many bytes."""
    ends = np.cumsum(runs[:, 1])
    slices, first = [], 0
    while first < len(runs):
        before = int(ends[first] - runs[first, 1])
        last = int(np.searchsorted(ends, before + _BATCH, "right"))
        last = min(max(last, first + 1), first + _VECTORS, len(runs))
        slices.append((first, last))
        first = last
    return slices


def _copy(pid: int, runs: Runs, room: Bytes) -> None:
    """By several threads: the kernel copies, and one thread does not fill the memory's width."""
    base = room.ctypes.data
    starts = np.cumsum(runs[:, 1]) - runs[:, 1]
    with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        jobs = [
            pool.submit(_copy_batch, pid, runs[first:last], base + int(starts[first]))
            for first, last in _batches(runs)
        ]
        for job in jobs:
            job.result()


def _expect_room(size: int) -> None:
    """Rather than that the system ends some process for want of memory."""
    text = Path("/proc/meminfo").read_text(encoding="ascii")
    available = next((w.split()[1] for w in text.splitlines() if w.startswith("MemAvail")), None)
    if available is not None and _TIMES_AS_MUCH * size > int(available) << 10:
        raise TerraceError(
            f"to copy {human_bytes(size)} and to mark takes {human_bytes(_TIMES_AS_MUCH * size)}, "
            "and there is not so much memory: take a core file, and look at that on another machine"
        )


@contextlib.contextmanager
def _first_in_line() -> Iterator[None]:
    """On a busy machine the process would stand still while others have the CPUs."""
    before = os.getpriority(os.PRIO_PROCESS, 0)
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, -20)  # the copying threads inherit it
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, 0, before)


def _segments(runs: Runs, room: Bytes) -> list[Segment]:
    segments, at = [], 0
    for start, size in runs.tolist():
        segments.append(Segment(start, room[at : at + size]))
        at += size
    return segments


class LiveTarget(Target):
    """By its number."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._proc = Path(f"/proc/{pid}")
        if not self._proc.is_dir():
            raise TerraceError(f"there is no process {pid}")
        self._pages = Pages(pid)
        self.memory = LiveMemory(pid, self._pages)
        command = (self._proc / "comm").read_text(errors="replace").strip()
        self.title = f"process {pid} ({command})"

    def mappings(self) -> list[Mapping]:
        try:
            text = (self._proc / "maps").read_text(errors="replace")
        except PermissionError:
            raise ptrace.refusal(self.pid) from None
        except OSError:
            text = ""
        if not text:
            raise TerraceError(f"process {self.pid} has ended, or has no memory of its own")
        return read_maps(text)

    def descriptors(self) -> list[Described]:
        return list(described(self.memory, self.mappings()))

    def why_none(self) -> str:
        with contextlib.suppress(OSError), open(self._proc / "exe", "rb") as file:
            if is_of_32_bits(file.read(5)):
                return OF_32_BITS
        return super().why_none()

    def capture(self, select: Select, registers: bool = False) -> Capture:
        expected = sum(int(r[1]) for r in self._runs(select(self.mappings())))
        _expect_room(expected)
        room = _Room(expected + expected // 16 + (16 << 20)).bytes
        for _ in range(0 if registers else _LOOKS):
            capture = self._while_all_wait(select, room)
            if capture is not None:
                return capture
        with _first_in_line(), ptrace.stopped(self.pid) as process:
            threads, inside = self._outside(process)
            capture = self._copied(select, room, threads)
        capture.pause = time.monotonic() - process.since
        capture.inside = inside
        return capture

    def _while_all_wait(self, select: Select, room: Bytes) -> Capture | None:
        """Nobody is stopped; None: a thread ran, or is in Terrace."""
        before = all_waiting(self.pid)
        if before is None:
            return None
        threads = [waiting.thread for waiting in before]
        if self.inside(self.mappings(), threads, self._program()):
            return None
        with _first_in_line():
            capture = self._copied(select, room, threads)
        return capture if all_waiting(self.pid) == before else None

    def _copied(self, select: Select, room: Bytes, threads: list[Thread]) -> Capture:
        mappings = self.mappings()
        runs = self._runs(select(mappings))
        total = int(runs[:, 1].sum())
        if total > len(room):
            raise TerraceError(f"process {self.pid} grew too fast to be copied: try again")
        _copy(self.pid, runs, room)
        return Capture(Copy(_segments(runs, room), self.memory), mappings, threads, total)

    def _program(self) -> str:
        return os.path.realpath(self._proc / "exe")

    def _runs(self, ranges: list[Range]) -> Runs:
        parts = [self._pages.runs(start, end) for start, end in ranges]
        return _pieces(np.concatenate([np.zeros((0, 2), np.uint64), *parts]))

    def _outside(self, process: ptrace.Stopped) -> tuple[list[Thread], int]:
        """Of a thread within Terrace, blocks may be on their way between levels.

        Only such threads go on, so none that is outside gets in again. Now and then all do: one
        may wait for what another holds that does not look as if it were inside.
        """
        program = self._program()
        mappings = self.mappings()
        ends = time.monotonic() + _PATIENCE
        moment = _A_MOMENT
        for attempt in itertools.count(1):
            threads = process.threads()
            inside = self.inside(mappings, threads, program)
            if not inside or time.monotonic() > ends:
                return threads, len(inside)
            everybody = attempt % _ROUNDS == 0
            process.again(moment, None if everybody else [t.tid for t in inside])
            moment = min(2 * moment, _LONGEST_MOMENT)
        raise AssertionError
