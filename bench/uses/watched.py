# SPDX-License-Identifier: MIT OR Apache-2.0
"""The anonymous memory of a server and of all its processes, twice a second, while it is loaded and after that."""

import contextlib
import statistics
import threading
import time
from pathlib import Path

import psutil
from server import Server
from workload import Failed

PERIOD_SECONDS = 0.5
LAST_SAMPLES = 6  # of the drain: their median counts

Sample = tuple[float, int]  # seconds since the server answered; bytes


def anonymous(pid: int) -> int:
    """Bytes; of pages that processes share their part. What is mapped from files is the program's doing."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss_Anon:"):
            return int(line.split()[1]) * 1024
    raise Failed("this kernel does not tell how much memory is anonymous")


def memory(pid: int) -> int:
    """Of a process and its children."""
    found = 0
    with contextlib.suppress(psutil.NoSuchProcess):
        root = psutil.Process(pid)
        for process in (root, *root.children(recursive=True)):
            with contextlib.suppress(OSError):  # it has ended
                found += anonymous(process.pid)
    return found


class Watch:
    """Samples from its construction until `end`."""

    def __init__(self, server: Server) -> None:
        self.samples: list[Sample] = []
        self._pid = server.pid()
        self._began = time.monotonic()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def now(self) -> float:
        return time.monotonic() - self._began

    def _run(self) -> None:
        while not self._ended.wait(PERIOD_SECONDS):
            self.samples.append((round(self.now(), 1), memory(self._pid)))

    def end(self) -> list[Sample]:
        self._ended.set()
        self._thread.join()
        return self.samples


def summary(samples: list[Sample], loaded_at: float) -> dict[str, float]:
    """`loaded_at`: when the load ended."""
    after = [sample for sample in samples if sample[0] >= loaded_at]
    return {
        "peak": max(size for _, size in samples),
        "loaded": after[0][1],
        "drained": statistics.median(size for _, size in after[-LAST_SAMPLES:]),
    }
