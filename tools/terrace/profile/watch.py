# SPDX-License-Identifier: MIT OR Apache-2.0
"""What a process allocates while one looks: its table is read again and again.

A record that is free is the next one used, so blocks that live shortly share few records, of which
one sees the last block each. It stands for those that the record had in between: its version tells
their number. In the end, the sum is made to be the number of samples that the library has counted.
"""

import contextlib
import threading
import time
from collections.abc import Callable
from dataclasses import replace

from terrace.debug.sampled.stacks import Reader
from terrace.debug.sampled.table import Key, Sample
from terrace.errors import TerraceError

_LEAST, _TIMES = 0.002, 9  # between two looks: seconds, and a look's processor time


class Watch:
    """From its making until stop(). `opened` fails while a program has not allocated yet."""

    def __init__(self, opened: Callable[[], Reader], reader: Reader | None = None) -> None:
        self._opened, self._reader = opened, reader
        self._taken = reader.taken if reader is not None else 0
        self._last = {key[:2]: s for key, s in reader.samples().items()} if reader else {}
        self._before = {(*record, *s.key[1:]) for record, s in self._last.items()}
        self._seen: dict[Key, Sample] = {}
        self._uses: dict[Key, int] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def _look(self) -> None:
        took = 0.0
        while not self._ended.wait(max(_LEAST, _TIMES * took)):
            began = time.thread_time()  # to wait for a record costs nobody anything
            try:
                reader = self._reader or self._opened()
                self._add(reader)
                self._reader = reader
            except (TerraceError, ValueError, LookupError):
                self._reader = None  # it has executed another program, or ends
            took = time.thread_time() - began

    def _add(self, reader: Reader) -> dict[Key, Sample]:
        """What is in the table."""
        samples = reader.samples()
        for key, sample in samples.items():
            before = self._last.get(key[:2])
            newest = reader.newest(key, sample) if sample.uses_since(before) else sample
            uses = newest.uses_since(before)
            self._last[key[:2]] = newest
            if uses:
                use = (*key[:2], newest.version)
                self._uses[use], self._seen[use] = uses, newest
        return samples

    def stop(self, reader: Reader) -> tuple[dict[Key, Sample], dict[Key, Sample]]:
        """What is new and there; and all that was allocated, by what was seen of it."""
        self._ended.set()
        self._thread.join()
        samples = self._add(reader)
        there = {key: sample for key, sample in samples.items() if key not in self._before}
        scale = (reader.taken - self._taken) / max(sum(self._uses.values()), 1)
        allocated = {
            key: replace(sample, weight=sample.weight * self._uses[key] * scale)
            for key, sample in self._seen.items()
        }
        return there, allocated


def wait(seconds: float, pid: int) -> None:
    """So long, or until somebody has seen enough; an error if the process ends meanwhile."""
    ends = time.monotonic() + seconds
    with contextlib.suppress(KeyboardInterrupt):
        while (left := ends - time.monotonic()) > 0:
            time.sleep(min(left, 0.1))
            try:
                with open(f"/proc/{pid}/stat", "rb") as file:
                    ended = file.read().rpartition(b")")[2].split()[0] == b"Z"
            except OSError:
                ended = True
            if ended:
                raise TerraceError(f"process {pid} has ended before the {seconds:g} seconds")
