# SPDX-License-Identifier: MIT OR Apache-2.0
"""What a server holds over time: proportional set sizes of its processes, and what is asked of the series."""

import contextlib
import re
import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import psutil

MIB = 1 << 20
GROWTH = 1.1  # what is held at the end, over what is held after SETTLED_MINUTES
SETTLED_MINUTES = 5
SPIKE_LIVE = 2048 * MIB
BASE_LIVE = 100 * MIB
AFTER_SPIKE = 150 * MIB
AFTER_SECONDS = 10.0


class Clock:
    """Time as it passes; tests have one of their own."""

    def now(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


REAL_TIME = Clock()


def held(pid: int) -> int:
    """Bytes of physical memory of a process and its descendants, each page by its share (Pss). Without shared memory, which a
    server maps itself and fills as it likes (PostgreSQL's buffers)."""
    total, processes = 0, []
    with contextlib.suppress(psutil.NoSuchProcess):
        processes = [server := psutil.Process(pid), *server.children(recursive=True)]
    for one in processes:
        with contextlib.suppress(OSError):  # one that has ended meanwhile
            rollup = Path(f"/proc/{one.pid}/smaps_rollup").read_text()
            sizes = dict(re.findall(r"^(Pss|Pss_Shmem): +(\d+) kB", rollup, re.M))
            total += (int(sizes.get("Pss", 0)) - int(sizes.get("Pss_Shmem", 0))) * 1024
    return total


@dataclass
class Series:
    """Samples of one server: seconds since the load began, and bytes."""

    samples: list[tuple[float, int]] = field(default_factory=list)

    def add(self, at: float, value: int) -> None:
        self.samples.append((at, value))

    def around(self, minute: int, length: float) -> float:
        """Median over the minute that ends at `minute`; a minute may be shorter than 60 s in tests."""
        inside = [v for at, v in self.samples if (minute - 1) * length <= at < minute * length]
        if not inside:
            raise ValueError(f"no sample in minute {minute}")
        return statistics.median(inside)


@dataclass(frozen=True)
class Soaked:
    """Bytes held after SETTLED_MINUTES and at the end, the largest sample, and operations done."""

    settled: float
    end: float
    largest: float
    operations: int

    @property
    def growth(self) -> float:
        return self.end / self.settled

    @property
    def good(self) -> bool:
        return self.growth <= GROWTH


@dataclass(frozen=True)
class Spiked:
    """Bytes held before the spike, at its top and after it; seconds until no more than AFTER_SPIKE was held."""

    before: int
    top: int
    after: int
    seconds: float | None  # None: not within AFTER_SECONDS

    @property
    def good(self) -> bool:
        return self.seconds is not None


def evaluate(series: Series, minutes: int, minute: float, operations: int) -> Soaked:
    return Soaked(
        series.around(min(SETTLED_MINUTES, minutes), minute), series.around(minutes, minute),
        max(value for _, value in series.samples), operations,
    )  # fmt: skip


def watch_spike(
    up: Callable[[], None], down: Callable[[], None], held_now: Callable[[], int], seconds: float = AFTER_SECONDS,
    clock: Clock = REAL_TIME,
) -> Spiked:  # fmt: skip
    """`up` makes SPIKE_LIVE live, `down` leaves BASE_LIVE; then looks for `seconds`, in any case to their end."""
    before = held_now()
    up()
    top = held_now()
    down()
    began = clock.now()
    reached = None
    while (passed := clock.now() - began) < seconds:
        after = held_now()
        if after <= AFTER_SPIKE and reached is None:
            reached = passed
        elif after > AFTER_SPIKE:
            reached = None
        clock.sleep(min(0.25, seconds / 20))
    return Spiked(before, top, after, reached)


def mib(value: float) -> str:
    return f"{value / MIB:,.0f}"


def all_good(results: Iterable[Soaked | Spiked | None]) -> bool:
    return all(one is None or one.good for one in results)
