# SPDX-License-Identifier: MIT OR Apache-2.0
"""What a JVM logs of its collections, its TLABs and its buffers: -Xlog:gc,gc+tlab=debug,gc+hab=debug with uptime, level and tags."""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from interleave import Values

LINE = re.compile(r"\[(\d+\.\d+)s\]\[\w+\s*\]\[([\w,]+)\s*\] (.*)")
PAUSE = re.compile(r"GC\(\d+\) Pause (\w+).* (\d+)M->(\d+)M\(\d+M\) (\d+\.\d+)ms$")
OTHER_PAUSE = re.compile(r"GC\(\d+\) Pause .* (\d+\.\d+)ms$")
TLABS = re.compile(r"TLAB totals: thrds: (\d+)\s+refills: (\d+) .*gc: (\d+)B .*slow: (\d+)B ")
LEVEL = re.compile(r"(core|llc|node): size (\d+)K refills (\d+) refilled \d+K foreign (\d+) busy (\d+) neighbours (\d+) wasted (\d+)K")
ASSOCIATION = re.compile(r"direct \d+ \(\d+K\), by (core|thread)")
COUNTS = ("refills", "foreign", "busy", "neighbours", "waste_kib")


@dataclass
class _Seen:
    """Sums over the lines of the window; the buffers' counters go on counting, so their first and last values are kept."""

    values: Values = field(default_factory=dict)
    before: dict[str, tuple[int, ...]] = field(default_factory=dict)
    last: dict[str, tuple[int, ...]] = field(default_factory=dict)
    is_by_core: bool = False  # since the last collection: TLABs are short

    def add(self, key: str, value: float) -> None:
        self.values[key] = self.values.get(key, 0) + value


def _lines(text: str) -> Iterator[tuple[float, str, str]]:
    for line in text.splitlines():
        if found := LINE.match(line):
            yield float(found[1]), found[2], found[3]


def _collection(seen: _Seen, text: str) -> None:
    if found := PAUSE.match(text):
        if found[1] in ("Young", "Full"):
            seen.add("collections", 1)
            seen.add("collected_mib", max(0, int(found[2]) - int(found[3])))
    found = OTHER_PAUSE.match(text)  # G1 has pauses that collect nothing
    if found:
        seen.add("pause_ms", float(found[1]))
        seen.values["longest_ms"] = max(seen.values.get("longest_ms", 0), float(found[1]))


def _tlabs(seen: _Seen, text: str) -> None:
    if found := TLABS.match(re.sub(r"^GC\(\d+\) ", "", text)):
        seen.add("by_core" if seen.is_by_core else "by_thread", 1)
        if not seen.is_by_core:
            seen.add("tlab_refills", int(found[2]))
            seen.add("labs", int(found[2]))
        seen.add("wasted_mib", (int(found[3]) + int(found[4])) / 2**20)


def _buffers(seen: _Seen, text: str, counts: bool) -> None:
    if found := LEVEL.search(text):
        numbers = tuple(int(found[i]) for i in range(3, 8))
        if counts:
            seen.before.setdefault(found[1], (0,) * len(COUNTS))
            seen.last[found[1]] = numbers
        else:
            seen.before[found[1]] = numbers
    elif found := ASSOCIATION.match(text):
        seen.is_by_core = found[1] == "core"


def parse(text: str, first: float = 0, last: float = math.inf) -> Values:
    """Of the lines between two uptimes, in seconds: collections, pause_ms (all of them), longest_ms, collected_mib, tlab_refills, labs (these and
    the buffers), by_thread and by_core (collections before which TLABs were large, and those before which they were short and are not counted as
    labs), wasted_mib (what TLABs and buffers left unused), and core.refills, core.foreign and so on for each level that has buffers. What never occurred is 0."""
    seen = _Seen(dict.fromkeys(("collections", "pause_ms", "longest_ms", "collected_mib", "tlab_refills", "by_thread", "by_core", "labs", "wasted_mib"), 0.0))
    for uptime, tags, line in _lines(text):
        if uptime > last:
            continue
        counts = uptime >= first
        if tags == "gc,hab":
            _buffers(seen, line, counts)
        elif counts and tags == "gc":
            _collection(seen, line)
        elif counts and tags == "gc,tlab":
            _tlabs(seen, line)
    for level, numbers in seen.last.items():
        for name, after, before in zip(COUNTS, numbers, seen.before[level], strict=True):
            seen.values[f"{level}.{name}"] = after - before
        seen.add("labs", seen.values[f"{level}.refills"])
        seen.add("wasted_mib", seen.values[f"{level}.waste_kib"] / 1024)
    return seen.values
