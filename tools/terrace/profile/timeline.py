# SPDX-License-Identifier: MIT OR Apache-2.0
"""`terrace profile --watch PID`: what a process holds over time, by site and by level."""

import contextlib
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from terrace.debug import damage
from terrace.debug.live import LiveTarget
from terrace.debug.sampled.stacks import Reader
from terrace.debug.umem.usage import with_caches
from terrace.debug.usage import Snapshot, UsageReader
from terrace.errors import TerraceError
from terrace.messages import say
from terrace.profile.collect import profile_of
from terrace.profile.text import short, sites

_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}


def seconds_of(option: str, text: str) -> float:
    """Of 10s, 5m, 1h, 90."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd]?)", text)
    if found is None or float(found[1]) == 0:
        raise TerraceError(f"{option} {text}: a time, 10s, 5m or 1h", 2)
    return float(found[1]) * _UNITS[found[2]]


@dataclass(frozen=True)
class Moment:
    """One look."""

    time: float  # seconds since 1970
    snapshot: Snapshot
    resident: int
    sites: dict[str, float]  # estimated bytes in use, by line of code

    def levels(self) -> dict[str, int]:
        """Bytes that the program has, and free ones by the level that holds them."""
        free = {f"free: {level.name}": level.bytes for level in self.snapshot.levels}
        free["free: kept large blocks"] = self.snapshot.large.kept_bytes
        return {"live": self.snapshot.live_bytes, **free, "free: spans": self.snapshot.dirty}


@dataclass
class Timeline:
    """All looks of one process."""

    title: str
    every: float
    moments: list[Moment] = field(default_factory=list)
    ended: str = ""  # why no look followed


class _Eye:
    """What of the process does not change, read once."""

    def __init__(self, pid: int) -> None:
        self.target = LiveTarget(pid)
        self._usage = UsageReader(self.target.layout, self.target.memory)
        self.reader = Reader(self.target)

    def look(self) -> Moment:
        with damage.expected("profile"), open(f"/proc/{self.target.pid}/status", "rb") as status:
            found = sites(profile_of(self.reader, self.reader.samples()))
            resident = re.search(rb"VmRSS:\s+(\d+)", status.read())
            return Moment(
                time.time(), with_caches(self.target, self._usage.read()),
                int(resident[1]) << 10 if resident else 0,
                {_name(s.line.function, s.line.place): s.values.bytes for s in found},
            )  # fmt: skip


def _name(function: str, place: str) -> str:
    return f"{short(function)}  {place}" if place else short(function)


def _ticks(every: float, during: float) -> Iterator[None]:
    """Now, and then so often; late looks are left out."""
    began = time.monotonic()
    while True:
        yield
        now = time.monotonic() - began
        following = (now // every + 1) * every
        if following > during:
            return
        time.sleep(following - now)


def watch(pid: int, every: float, during: float) -> Timeline:
    """Ctrl-C and the process' end leave what was seen until then."""
    eye = _Eye(pid)
    if not eye.reader.period:
        say(f"without samples there are no sites: `terrace profile --start {pid}` begins them")
    timeline = Timeline(eye.target.title, every)
    with contextlib.suppress(KeyboardInterrupt):
        for _ in _ticks(every, during):
            try:
                timeline.moments.append(eye.look())
            except (OSError, TerraceError):
                timeline.ended = "then the process had ended, or executed another program"
                break
    if not timeline.moments:
        raise TerraceError(f"process {pid} has ended before it could be looked at")
    return timeline
