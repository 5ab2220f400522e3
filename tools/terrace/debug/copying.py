# SPDX-License-Identifier: MIT OR Apache-2.0
"""A copy of parts of a process's memory, made while it stands still: what counts is how soon."""

import contextlib
import ctypes
import mmap
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import numpy.typing as npt

from terrace.debug.memory import Bytes, Segment
from terrace.errors import TerraceError
from terrace.report.cells import human_bytes

PAGE = os.sysconf("SC_PAGE_SIZE")
_POPULATE_WRITE = 23  # madvise, since Linux 5.14
_VECTORS = 1024  # IOV_MAX
_BATCH = 16 << 20
_TIMES_AS_MUCH = 2  # memory that findleaks takes, of what it copies

Runs = npt.NDArray[np.uint64]  # a row each: address, bytes

_libc = ctypes.CDLL(None, use_errno=True)
_libc.process_vm_readv.restype = ctypes.c_ssize_t


class Room:
    """Where a copy goes: its pages are there before the process is stopped."""

    def __init__(self, size: int) -> None:
        self._map = mmap.mmap(-1, max(size, PAGE), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        with contextlib.suppress(OSError, ValueError):
            self._map.madvise(mmap.MADV_HUGEPAGE)
        with contextlib.suppress(OSError, ValueError):
            self._map.madvise(_POPULATE_WRITE)
        self.bytes: Bytes = np.frombuffer(self._map, np.uint8)


def pieces(runs: Runs) -> Runs:
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


def copy_batch(pid: int, runs: Runs, into: int) -> None:
    """Runs one behind the other; what can not be read stays zero."""
    while len(runs) > _VECTORS:
        copy_batch(pid, runs[:_VECTORS], into)
        into += int(runs[:_VECTORS, 1].sum())
        runs = runs[_VECTORS:]
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
            copy_batch(pid, run[None, :], into)
            into += int(run[1])
    elif total > PAGE:  # a page somewhere in it is not to be had
        start = int(vectors[0, 0])
        for at in range(0, total, PAGE):
            copy_batch(pid, np.array([[start + at, min(PAGE, total - at)]], np.uint64), into + at)


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


def copy(pid: int, runs: Runs, room: Bytes) -> None:
    """By several threads: the kernel copies, and one thread does not fill the memory's width."""
    base = room.ctypes.data
    starts = np.cumsum(runs[:, 1]) - runs[:, 1]
    with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        jobs = [
            pool.submit(copy_batch, pid, runs[first:last], base + int(starts[first]))
            for first, last in _batches(runs)
        ]
        for job in jobs:
            job.result()


def expect_room(size: int) -> None:
    """Rather than that the system ends some process for want of memory."""
    text = Path("/proc/meminfo").read_text(encoding="ascii")
    available = next((w.split()[1] for w in text.splitlines() if w.startswith("MemAvail")), None)
    if available is not None and _TIMES_AS_MUCH * size > int(available) << 10:
        raise TerraceError(
            f"to copy {human_bytes(size)} and to mark takes {human_bytes(_TIMES_AS_MUCH * size)}, "
            "and there is not so much memory: take a core file, and look at that on another machine"
        )


@contextlib.contextmanager
def first_in_line() -> Iterator[None]:
    """On a busy machine the process would stand still while others have the CPUs."""
    before = os.getpriority(os.PRIO_PROCESS, 0)
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, -20)  # the copying threads inherit it
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, 0, before)


def segments(runs: Runs, room: Bytes) -> list[Segment]:
    segments, at = [], 0
    for start, size in runs.tolist():
        segments.append(Segment(start, room[at : at + size]))
        at += size
    return segments
