# SPDX-License-Identifier: MIT OR Apache-2.0
"""A live process. It is stopped for a copy only; everything else reads it as it runs."""

import contextlib
import itertools
import os
import time
from pathlib import Path

import numpy as np

from terrace.debug import ptrace
from terrace.debug.copying import (
    PAGE,
    Room,
    Runs,
    copy,
    copy_batch,
    expect_room,
    first_in_line,
    pieces,
    segments,
)
from terrace.debug.memory import Bytes, Copy, Mapping, Memory, Thread, UnreadableError, expect_few
from terrace.debug.sampled import perf_map
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

_RESIDENT = 62  # bits 62 and 63 of a page's entry in pagemap: it is swapped, it is present
_GUARD = 1 << 58  # it is a guard (MADV_GUARD_INSTALL, since Linux 6.15), which looks like swapped
_SPARSE = 1 << 16  # longer requests look which pages there are
# Seconds: to find all threads outside of Terrace; that those inside go on, at first and at most.
_PATIENCE, _A_MOMENT, _LONGEST_MOMENT = 1.0, 0.0005, 0.05
_ROUNDS = 16
_LOOKS = 3  # for a moment in which no thread runs


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

    changes = True

    def __init__(self, pid: int, pages: Pages) -> None:
        try:
            self._file = os.open(f"/proc/{pid}/mem", os.O_RDONLY)
        except PermissionError:
            raise ptrace.refusal(pid) from None
        except OSError:
            raise TerraceError(f"there is no process {pid}") from None
        self._pid, self._pages = pid, pages

    def read(self, address: int, size: int) -> bytes:
        try:
            data = os.pread(self._file, size, address)
        except (OSError, OverflowError):
            raise UnreadableError(address) from None
        if len(data) != size:
            raise UnreadableError(address + len(data))
        return data

    def at_once(self, ranges: list[tuple[int, int]]) -> list[bytes]:
        """By as few system calls as can be: between two of them a busy process does much."""
        runs = np.array(ranges, np.uint64)
        ends = np.cumsum(runs[:, 1]).tolist()
        into = np.zeros(ends[-1], np.uint8)
        copy_batch(self._pid, runs, into.ctypes.data)
        raw = into.tobytes()
        return [raw[end - size : end] for (_, size), end in zip(ranges, ends, strict=True)]

    def sparse(self, address: int, size: int) -> Bytes:
        if size < _SPARSE:
            return super().sparse(address, size)
        start, end = address // PAGE * PAGE, -(-(address + size) // PAGE) * PAGE
        runs = self._pages.runs(start, end).tolist()
        expect_few(address, size - sum(length for _, length in runs))
        whole = np.zeros(size, np.uint8)
        for at, length in runs:
            low, high = max(at, address), min(at + length, address + size)
            with contextlib.suppress(UnreadableError):
                data = np.frombuffer(self.read(low, high - low), np.uint8)
                whole[low - address : high - address] = data
        return whole


class LiveTarget(Target):
    """By its number."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._proc = Path(f"/proc/{pid}")
        self.root = f"/proc/{pid}/root"
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

    def perf_map(self) -> perf_map.PerfMap:
        return perf_map.of_process(self.pid)

    def descriptors(self) -> list[Described]:
        return list(described(self.memory, self.mappings()))

    def why_none(self) -> str:
        with contextlib.suppress(OSError), open(self._proc / "exe", "rb") as file:
            if is_of_32_bits(file.read(5)):
                return OF_32_BITS
        return super().why_none()

    def capture(self, select: Select, registers: bool = False) -> Capture:
        expected = sum(int(r[1]) for r in self._runs(select(self.mappings())))
        expect_room(expected)
        room = Room(expected + expected // 16 + (16 << 20)).bytes
        for _ in range(0 if registers else _LOOKS):
            capture = self._while_all_wait(select, room)
            if capture is not None:
                return capture
        with first_in_line(), ptrace.stopped(self.pid) as process:
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
        with first_in_line():
            capture = self._copied(select, room, threads)
        return capture if all_waiting(self.pid) == before else None

    def _copied(self, select: Select, room: Bytes, threads: list[Thread]) -> Capture:
        mappings = self.mappings()
        runs = self._runs(select(mappings))
        total = int(runs[:, 1].sum())
        if total > len(room):
            raise TerraceError(f"process {self.pid} grew too fast to be copied: try again")
        copy(self.pid, runs, room)
        return Capture(Copy(segments(runs, room), self.memory), mappings, threads, total)

    def _program(self) -> str:
        return os.path.realpath(self._proc / "exe")

    def _runs(self, ranges: list[Range]) -> Runs:
        parts = [self._pages.runs(start, end) for start, end in ranges]
        return pieces(np.concatenate([np.zeros((0, 2), np.uint64), *parts]))

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
