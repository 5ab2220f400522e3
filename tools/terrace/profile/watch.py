# SPDX-License-Identifier: MIT OR Apache-2.0
"""What a process allocates while one looks: its table is read again and again."""

import contextlib
import threading
import time
from collections.abc import Callable

from terrace.debug.sampled.stacks import Reader
from terrace.debug.sampled.table import Key, Sample
from terrace.errors import TerraceError
from terrace.messages import count

_EVERY = 0.02  # seconds; a table of 1,000 samples is half a MiB


class Watch:
    """From its making until stop(). `opened` fails while a program has not allocated yet."""

    def __init__(self, opened: Callable[[], Reader], reader: Reader | None = None) -> None:
        self.seen: dict[Key, Sample] = {}
        self._opened, self._reader = opened, reader
        self._before = reader.samples() if reader is not None else {}
        self._taken = reader.taken if reader is not None else 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def _look(self) -> None:
        while not self._ended.wait(_EVERY):
            try:
                reader = self._reader or self._opened()
                self.add(reader.samples())
                self._reader = reader
            except (TerraceError, ValueError, LookupError):
                self._reader = None  # it has executed another program, or ends

    def add(self, samples: dict[Key, Sample]) -> dict[Key, Sample]:
        """Those of them that are new since the beginning."""
        fresh = {key: sample for key, sample in samples.items() if key not in self._before}
        self.seen.update(fresh)
        return fresh

    def stop(self, reader: Reader) -> tuple[dict[Key, Sample], list[str]]:
        """What is new and there; and a note on what was not seen."""
        self._ended.set()
        self._thread.join()
        fresh = self.add(reader.samples())
        missed = reader.taken - self._taken - len(self.seen)
        if missed <= 0:
            return fresh, []
        return fresh, [
            f"{count(missed, 'sample')} of {missed + len(self.seen):,} came and went between two "
            f"looks, {1000 * _EVERY:.0f} ms apart: blocks that live that shortly are not counted"
        ]


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
