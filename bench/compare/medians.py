# SPDX-License-Identifier: MIT OR Apache-2.0
"""Medians of ratios with intervals, and geometric means of such medians.

An interval is for 95 %. That of a median is bounded by two of the values themselves (order statistics), which assumes nothing of
how they are distributed. That of a geometric mean over workloads comes from drawing the rounds again, with replacement: what
another run of as many rounds on this machine might have given. A round that has no value has nan.
"""

import random
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binom, gmean

LEVEL = 0.95
ENOUGH = 6  # rounds: with fewer, not even the smallest and the largest value bound the median with 95 %
DRAWS = 500

Row = NDArray[np.float64]  # a value per round


@dataclass(frozen=True)
class Estimate:
    middle: float
    low: float
    high: float
    count: int  # rounds for a median, workloads for a geometric mean

    def __str__(self) -> str:
        return f"{self.middle:.2f} ({self.low:.2f}-{self.high:.2f})"


@cache
def outside(count: int, level: float = LEVEL) -> int:
    """How many of the sorted values may be left out at each end so that the rest still bounds the median with this level."""
    fits = [n for n in range(1, (count + 1) // 2) if 2 * binom.cdf(n, count, 0.5) <= 1 - level]
    return max(fits, default=0)


def median(values: ArrayLike) -> Estimate | None:
    """Of those that are there, if any; of fewer than ENOUGH, the interval is all of them."""
    data = np.sort(np.asarray(values, float))
    data = data[~np.isnan(data)]
    skip = outside(len(data))
    return Estimate(float(np.median(data)), float(data[skip]), float(data[-1 - skip]), len(data)) if len(data) else None


def ratios(ours: Row, base: Row, floor: float) -> Row:
    """Round by round. Values below the floor count as the floor: what is that small does not matter, and may be 0."""
    return np.maximum(ours, floor) / np.maximum(base, floor)


def draws(rounds: int, count: int = DRAWS) -> NDArray[np.intp]:
    """Numbers of rounds, drawn with replacement: the same for every workload, since a noisy round is one for all of them."""
    source = random.Random(1)
    return np.array([source.choices(range(rounds), k=rounds) for _ in range(count)], np.intp)


def drawn_medians(row: Row, drawn: NDArray[np.intp]) -> Row:
    """The median of each drawing. One that has no value of this row has the row's median."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of drawings that are empty
        medians = np.nanmedian(row[drawn], axis=1)
    return np.where(np.isnan(medians), np.nanmedian(row), medians)


def percentile(data: ArrayLike, share: float) -> float:
    """The smallest that at least this share of the values do not exceed."""
    return float(np.quantile(np.asarray(data, float), share, method="inverted_cdf"))


def mean_of_medians(middles: Sequence[float], drawn: Sequence[Row]) -> Estimate:
    """The geometric mean over workloads; `drawn` has, per workload, the median of each drawing of rounds."""
    means = gmean(np.array(drawn), axis=0)
    tail = (1 - LEVEL) / 2
    return Estimate(float(gmean(middles)), percentile(means, tail), percentile(means, 1 - tail), len(middles))
