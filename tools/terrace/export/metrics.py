# SPDX-License-Identifier: MIT OR Apache-2.0
"""The metrics: read anew for each scrape, of each process that is there then."""

import mmap
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.registry import Collector

from terrace.debug import damage
from terrace.debug.live import LiveTarget
from terrace.debug.sampled.stacks import Reader
from terrace.debug.umem.usage import with_caches
from terrace.debug.usage import Snapshot, UsageReader
from terrace.errors import TerraceError
from terrace.profile.collect import profile_of
from terrace.profile.text import short, sites

_PROCESS = ("pid", "command")
_SITES_SECONDS = 30.0  # unwinding takes longer than everything else: not for each scrape

SiteBytes = list[tuple[str, str, float]]  # function, place, bytes


class Process:
    """One that is looked at again and again."""

    def __init__(self, pid: int, most_sites: int) -> None:
        self.target = LiveTarget(pid)
        self.labels = [str(pid), Path(f"/proc/{pid}/comm").read_text(errors="replace").strip()]
        self._readers = [UsageReader(h.layout, self.target.memory) for h in self.target.heaps]
        self._most_sites = most_sites
        self._sites: SiteBytes = []
        self._sites_read = 0.0

    def heaps(self) -> Iterator[Snapshot]:
        """Mostly one; libumem.so has its own beside malloc's."""
        for chosen, reader in enumerate(self._readers):
            self.target.chosen = chosen
            yield with_caches(self.target, reader.read())

    def resident(self) -> int:
        pages = Path(f"/proc/{self.target.pid}/statm").read_text(encoding="ascii").split()[1]
        return int(pages) * mmap.PAGESIZE

    def sites(self) -> SiteBytes:
        """Those that hold most, if it samples."""
        now = time.monotonic()
        if self._most_sites and (not self._sites_read or now - self._sites_read > _SITES_SECONDS):
            reader = Reader(self.target)
            found = sites(profile_of(reader, reader.samples())) if reader.period else []
            self._sites = [
                (short(site.line.function), site.line.place, site.values.bytes)
                for site in found[: self._most_sites]
            ]
            self._sites_read = now
        return self._sites


@dataclass
class _Families:
    """A row of each for each process."""

    info: InfoMetricFamily = field(
        default_factory=lambda: InfoMetricFamily(
            "terrace_heap", "Version, library and rung of a process' heap", labels=_PROCESS
        )
    )
    gauges: dict[str, GaugeMetricFamily] = field(default_factory=dict)
    counters: dict[str, CounterMetricFamily] = field(default_factory=dict)

    def gauge(self, name: str, what: str, labels: list[str], value: float, *more: str) -> None:
        family = self.gauges.setdefault(
            name, GaugeMetricFamily(name, what, labels=(*_PROCESS, *more[::2]))
        )
        family.add_metric([*labels, *more[1::2]], value)

    def counter(self, name: str, what: str, labels: list[str], value: float) -> None:
        family = self.counters.setdefault(name, CounterMetricFamily(name, what, labels=_PROCESS))
        family.add_metric(labels, value)

    def all(self) -> Iterator[Metric]:
        yield self.info
        yield from self.gauges.values()
        yield from self.counters.values()


def _add(families: _Families, process: Process) -> None:
    labels = process.labels
    heaps = list(process.heaps())
    live = sum(h.live_bytes for h in heaps)
    mapped = sum(h.committed for h in heaps)
    free: dict[str, int] = {}
    for heap in heaps:
        for level in heap.levels:
            free[level.name] = free.get(level.name, 0) + level.bytes
        free["spans"] = free.get("spans", 0) + heap.dirty
        free["large"] = free.get("large", 0) + heap.large.kept_bytes
    usages = [u for h in heaps for u in h.classes]
    calls = sum(u.allocations for u in usages) + sum(h.large.allocations for h in heaps)
    resident, site_bytes = process.resident(), process.sites()
    # All of it could be read: nothing of a process that ends meanwhile is shown.
    f = families
    f.gauge("terrace_live_bytes", "Bytes of blocks that the program has not freed", labels, live)
    f.gauge("terrace_mapped_bytes", "Addresses that the heap has mapped", labels, mapped)
    f.gauge("terrace_resident_bytes", "Resident memory of the whole process", labels, resident)
    for name, size in free.items():
        what = "Bytes of free blocks, by the level that holds them"
        f.gauge("terrace_free_bytes", what, labels, size, "level", name)
    for function, place, held in site_bytes:
        what = "Estimated bytes in use, by the line of code that has allocated them"
        f.gauge("terrace_site_live_bytes", what, labels, held, "function", function, "place", place)
    f.counter("terrace_allocations", "Blocks that the program was given", labels, calls)
    failures = sum(u.failures for u in usages)
    f.counter("terrace_failed_refills", "Refills that found no memory", labels, failures)
    purged = sum(h.purged for h in heaps)
    f.counter("terrace_purged_bytes", "Memory given back to the system", labels, purged)
    found = process.target.heaps[0]
    facts = {
        "version": found.layout.library_version, "library": found.mapping.path,
        "rung": heaps[0].rung,
    }  # fmt: skip
    f.info.add_metric(labels, facts)


class TerraceCollector(Collector):
    """Of the processes that `pids` lists; those without Terrace are passed over."""

    def __init__(self, pids: Callable[[], Iterable[int]], most_sites: int) -> None:
        self._pids = pids
        self._most_sites = most_sites
        self._processes: dict[int, Process] = {}

    def collect(self) -> Iterator[Metric]:
        families = _Families()
        there = 0
        known, self._processes = self._processes, {}
        for pid in self._pids():
            try:
                with damage.expected("export"):
                    process = known.get(pid) or Process(pid, self._most_sites)
                    _add(families, process)
            except (OSError, TerraceError):
                continue  # it has ended, or executed another program: the next time finds out
            self._processes[pid] = process
            there += 1
        yield GaugeMetricFamily("terrace_processes", "Processes that could be read", value=there)
        yield from families.all()
