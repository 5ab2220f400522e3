# SPDX-License-Identifier: MIT OR Apache-2.0
"""The memory of a server and of all its processes, twice a second, while it is loaded and after that."""

import contextlib
import statistics
import threading
import time

import psutil
from server import Server

PERIOD_SECONDS = 0.5
LAST_SAMPLES = 6  # of the drain: their median counts

Sample = tuple[float, float]  # seconds since the server answered; bytes, pages that processes share counted once


def memory(pid: int) -> float:
    """Bytes, of a process and its children."""
    found = 0
    with contextlib.suppress(psutil.NoSuchProcess):
        root = psutil.Process(pid)
        for process in (root, *root.children(recursive=True)):
            with contextlib.suppress(psutil.NoSuchProcess):
                found += process.memory_full_info().pss
    return float(found)


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
