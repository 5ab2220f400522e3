# SPDX-License-Identifier: MIT OR Apache-2.0
"""Medians of ratios with intervals, and geometric means of such medians.

An interval is for 95 %. That of a median is bounded by two of the values themselves (order statistics), which assumes nothing of
how they are distributed. That of a geometric mean over workloads comes from drawing the rounds again, with replacement: what
another run of as many rounds on this machine might have given.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

LEVEL = 0.95
ENOUGH = 6  # rounds: with fewer, not even the smallest and the largest value bound the median with 95 %
DRAWS = 500

Row = Sequence[float | None]  # a value per round; None where a round has none


@dataclass(frozen=True)
class Estimate:
    middle: float
    low: float
    high: float
    count: int  # rounds for a median, workloads for a geometric mean

    def __str__(self) -> str:
        return f"{self.middle:.2f} ({self.low:.2f}-{self.high:.2f})"


def outside(count: int, level: float = LEVEL) -> int:
    """How many of the sorted values may be left out at each end so that the rest still bounds the median with this level."""
    left_out, tail = 0, 0.5**count
    while True:
        tail += math.comb(count, left_out + 1) * 0.5**count
        if 2 * tail > 1 - level or 2 * (left_out + 1) >= count:
            return left_out
        left_out += 1


def median(values: Sequence[float]) -> Estimate:
    """Of at least one value; of fewer than ENOUGH, the interval is all of them."""
    data = sorted(values)
    skip = outside(len(data))
    return Estimate(statistics.median(data), data[skip], data[-1 - skip], len(data))


def ratios(ours: Row, base: Row, floor: float) -> list[float | None]:
    """Round by round. Values below the floor count as the floor: what is that small does not matter, and may be 0."""
    return [None if a is None or b is None else max(a, floor) / max(b, floor) for a, b in zip(ours, base, strict=True)]


def geometric_mean(values: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))


def draws(rounds: int, count: int = DRAWS) -> list[list[int]]:
    """Numbers of rounds, drawn with replacement: the same for every workload, since a noisy round is one for all of them."""
    source = random.Random(1)
    return [source.choices(range(rounds), k=rounds) for _ in range(count)]


def drawn_medians(row: Row, drawn: Sequence[Sequence[int]]) -> list[float]:
    """The median of each drawing. One that has no value of this row has the row's median."""
    present = [v for v in row if v is not None]
    whole = statistics.median(present)
    if len(present) == 1:
        return [whole] * len(drawn)
    medians = []
    for rounds in drawn:
        data = sorted([v for v in (row[r] for r in rounds) if v is not None])
        half = len(data) // 2
        if not data:
            medians.append(whole)
        else:
            medians.append(data[half] if len(data) % 2 else (data[half - 1] + data[half]) / 2)
    return medians


def percentile(data: Sequence[float], share: float) -> float:
    """Of sorted values: the smallest that at least this share of them do not exceed."""
    return data[max(0, math.ceil(share * len(data)) - 1)]


def mean_of_medians(middles: Sequence[float], drawn: Sequence[Sequence[float]]) -> Estimate:
    """The geometric mean over workloads; `drawn` has, per workload, the median of each drawing of rounds."""
    middle = geometric_mean(middles)
    means = sorted(geometric_mean(one) for one in zip(*drawn, strict=True))
    tail = (1 - LEVEL) / 2
    return Estimate(middle, percentile(means, tail), percentile(means, 1 - tail), len(middles))
