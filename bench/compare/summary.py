# SPDX-License-Identifier: MIT OR Apache-2.0
"""From measurements to what is told: ratios per workload, geometric means per section, what failed, where Terrace loses."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import medians
import numpy as np
from catalogue import GROUPS, SCALING
from interleave import AGAIN
from medians import Estimate
from metrics import Metric
from store import WORK, Header, Measurement, Results

OURS = "terrace"
LOST = 1.10  # of the best other allocator's: from here on Terrace loses a workload
MOST = 0.9  # of the workloads
WON = 1.03  # of the best: up to here nobody tells the difference

ONE, MORE = "1 thread", "more threads"


@dataclass(frozen=True)
class Failure:
    workload: str
    allocator: str
    times: int
    runs: int
    reason: str  # of the last one


@dataclass(frozen=True)
class Loss:
    workload: str
    best: str
    ratio: Estimate


class Comparison:
    def __init__(self, store: Results, reference: str | None = None) -> None:
        """Relative to `reference`, the first allocator if none is named."""
        self.header: Header = store.header
        self.allocators = list(store.header.allocators)
        self.reference = reference or self.allocators[0]
        self.measurements = [m for m in store.results.values() if m.key.workload in store.header.workloads]
        self.rounds = 1 + max((m.key.round for m in self.measurements), default=-1)
        self._table: dict[tuple[str, str, str], dict[int, Measurement]] = defaultdict(dict)
        for m in self.measurements:
            self._table[m.key.kind, m.key.workload, m.key.allocator][m.key.round] = m
        measured = {m.key.workload for m in self.measurements}
        self.workloads = [key for key in self.header.workloads if key in measured]
        self._drawn = medians.draws(self.rounds)
        # An instance's own caches: the page asks for the same ratio in several places.
        self.ratio = lru_cache(None)(self._ratio)
        self._drawn_medians = lru_cache(None)(self._draw)

    # Per workload

    def _values(self, metric: Metric, workload: str, allocator: str) -> medians.Row:
        """Per round; nan where it was not measured, failed or does not know this quantity."""
        found = self._table.get((metric.kind, workload, allocator), {})
        return np.array([found[r].values.get(metric.key, np.nan) if r in found else np.nan for r in range(self.rounds)], float)

    def absolute(self, metric: Metric, workload: str, allocator: str) -> Estimate | None:
        return medians.median(self._values(metric, workload, allocator))

    def _ratios(self, metric: Metric, workload: str, allocator: str, base: str) -> medians.Row:
        return medians.ratios(self._values(metric, workload, allocator), self._values(metric, workload, base), metric.floor)

    def _ratio(self, metric: Metric, workload: str, allocator: str, base: str | None = None) -> Estimate | None:
        """To another allocator, the reference if none is named, within each round."""
        return medians.median(self._ratios(metric, workload, allocator, base or self.reference))

    def best(self, metric: Metric, workload: str, allocators: Sequence[str] | None = None) -> str | None:
        """Which of all, or of these, has the smallest median of the ratios to the reference."""
        found = {a: e.middle for a in (self.allocators if allocators is None else allocators) if (e := self.ratio(metric, workload, a))}
        return min(found, key=lambda a: found[a]) if found else None

    def to_best(self, metric: Metric, workload: str, allocator: str) -> Estimate | None:
        best = self.best(metric, workload)
        return self.ratio(metric, workload, allocator, best) if best else None

    def rate(self, workload: str, allocator: str) -> Estimate | None:
        """Operations a second."""
        found = [m.values for m in self._table.get((WORK, workload, allocator), {}).values()]
        return medians.median([v["operations"] / v["seconds"] for v in found if v.get("operations") and v.get("seconds")])

    # Over workloads

    @cached_property
    def sections(self) -> dict[str, list[str]]:
        """Name -> workloads. What only adds thread counts is in none."""
        known = self.header.workloads
        counted = [w for w in self.workloads if known[w]["group"] != SCALING]
        sections = {"all": counted} | {g: [w for w in counted if known[w]["group"] == g] for g in GROUPS}
        threads = {ONE: [w for w in counted if known[w]["threads"] == 1], MORE: [w for w in counted if known[w]["threads"] > 1]}
        return {name: found for name, found in (sections | threads).items() if found}

    def _draw(self, metric: Metric, workload: str, allocator: str, base: str) -> medians.Row:
        return medians.drawn_medians(self._ratios(metric, workload, allocator, base), self._drawn)

    def mean(self, metric: Metric, section: str, allocator: str, to_best: bool = False) -> Estimate | None:
        """Relative to the reference, or to the best allocator of each workload."""
        return self.mean_to(metric, section, allocator, lambda w: self.best(metric, w) if to_best else self.reference)

    def mean_to(self, metric: Metric, section: str, allocator: str, base_of: Callable[[str], str | None]) -> Estimate | None:
        """The geometric mean of the medians, over those workloads of the section that have them for this allocator; `base_of` says
        to whom a workload's ratio is."""
        middles, drawn = [], []
        for workload in self.sections.get(section, []):
            base = base_of(workload)
            found = self.ratio(metric, workload, allocator, base) if base else None
            if found and base:
                middles.append(found.middle)
                drawn.append(self._drawn_medians(metric, workload, allocator, base))
        return medians.mean_of_medians(middles, drawn) if middles else None

    def comparable_means(self, metric: Metric, section: str) -> dict[str, float]:
        """By allocator, of those that were measured in most workloads: the mean of a few says nothing beside that of all."""
        means = {a: m for a in self.allocators if (m := self.mean(metric, section, a))}
        most = max((m.count for m in means.values()), default=0)
        return {a: m.middle for a, m in means.items() if m.count >= MOST * most}

    def known(self, metric: Metric, section: str) -> int:
        """How many workloads of a section have this quantity, under any allocator."""
        return sum(self.best(metric, w) is not None for w in self.sections.get(section, []))

    def noise(self, metric: Metric, section: str = "all") -> float | None:
        """The reference against itself: 95 % of the workloads' medians are no farther from 1 than this, as a factor."""
        found = [e.middle for w in self.sections.get(section, []) if (e := self.ratio(metric, w, AGAIN))]
        away = [max(m, 1 / m) for m in found]
        return medians.percentile(away, medians.LEVEL) if away else None

    # What went wrong, and what is to be made better

    @cached_property
    def failures(self) -> list[Failure]:
        found = []
        for (_, workload, allocator), by_round in self._table.items():
            failed = [m for m in by_round.values() if m.failed]
            if failed:
                found.append(Failure(workload, allocator, len(failed), len(by_round), failed[-1].failed))
        return sorted(found, key=lambda f: (f.workload, f.allocator))

    def failed(self, workload: str, allocator: str) -> str:
        """How often, in words; nothing if it did not."""
        found = (f for f in self.failures if (f.workload, f.allocator) == (workload, allocator))
        return next((f"failed {f.times} of {f.runs}" for f in found), "")

    def ours_failed(self) -> list[Failure]:
        """Those that are Terrace's: what the reference fails in as well is the workload's fault."""
        others = {f.workload for f in self.failures if f.allocator in (self.reference, AGAIN)}
        return [f for f in self.failures if f.allocator == OURS and f.workload not in others]

    @property
    def others(self) -> list[str]:
        return [a for a in self.allocators if a != OURS]

    def against_other(self, metric: Metric, workload: str) -> Loss | None:
        """Terrace's ratio to the best other allocator. Below 1 it wins."""
        best = self.best(metric, workload, self.others)
        ratio = self.ratio(metric, workload, OURS, best) if best else None
        return Loss(workload, best, ratio) if best and ratio else None

    def against_others(self, metric: Metric) -> dict[str, Loss]:
        """Per workload that counts in the means."""
        return {w: found for w in self.sections.get("all", []) if (found := self.against_other(metric, w))}

    def mean_to_others(self, metric: Metric, section: str, others: list[str] | None = None) -> Estimate | None:
        """Terrace relative to the best other allocator of each workload; `others`: to the best of these."""
        rivals = self.others if others is None else others
        return self.mean_to(metric, section, OURS, lambda w: self.best(metric, w, rivals))

    def losses(self, metric: Metric) -> list[Loss]:
        lost = [x for x in self.against_others(metric).values() if x.ratio.middle > LOST]
        return sorted(lost, key=lambda x: -x.ratio.middle)
