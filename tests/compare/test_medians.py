# SPDX-License-Identifier: MIT OR Apache-2.0
"""Ratios, intervals and means with known answers."""

import math
import random

import medians
import numpy as np
import pytest
from medians import Estimate


# From tables of the order-statistic interval for the median, 95 %: the ranks for n values, counted from 1.
@pytest.mark.parametrize(
    ("count", "rank"), [(1, 1), (2, 1), (5, 1), (6, 1), (8, 1), (9, 2), (11, 2), (12, 3), (15, 4), (20, 6), (25, 8)]
)
def test_ranks_that_bound_the_median(count, rank):
    assert medians.outside(count) == rank - 1


def test_the_median_has_the_interval_of_its_ranks():
    assert medians.median([9, 1, 5, 3, 7, 2, 8, 4, 6]) == Estimate(5, 2, 8, 9)
    assert medians.median([np.nan]) is None
    assert medians.median([4.0]) == Estimate(4, 4, 4, 1)
    assert medians.median([1, 2]) == Estimate(1.5, 1, 2, 2)


def test_the_interval_covers_the_true_median_as_often_as_it_says():
    source = random.Random(3)
    samples = [medians.median([source.expovariate(1) for _ in range(10)]) for _ in range(4000)]
    covered = sum(e.low <= math.log(2) <= e.high for e in samples) / len(samples)
    assert 0.95 <= covered <= 0.99  # exactly: 0.9785


def test_ratios_are_of_the_same_round():
    found = medians.ratios(np.array([2, np.nan, 9, 4]), np.array([1, 5, np.nan, 8]), 0)
    np.testing.assert_equal(found, [2, np.nan, np.nan, 0.5])


def test_what_is_below_the_floor_is_the_floor():
    assert list(medians.ratios([0, 50, 300], [20, 0, 100], 100)) == [1, 1, 3]


def test_a_slow_round_changes_no_ratio():
    ours, base = [1.0, 2.0, 10.0], [2.0, 4.0, 20.0]
    assert medians.median(medians.ratios(ours, base, 0)) == Estimate(0.5, 0.5, 0.5, 3)


def test_drawn_medians_are_of_the_drawn_rounds():
    drawn = np.array([[0, 0, 0, 0], [0, 1, 2, 3], [1, 3, 3, 2], [2, 2, 2, 2], [0, 1, 1, 3]])
    assert list(medians.drawn_medians(np.array([1, 2, np.nan, 4]), drawn)) == [1, 2, 4, 2, 2]


def test_draws_repeat_themselves():
    np.testing.assert_equal(medians.draws(5), medians.draws(5))
    assert medians.draws(5, 9).shape == (9, 5)


def test_percentiles():
    data = list(range(1, 101))
    assert [medians.percentile(data, share) for share in (0, 0.025, 0.5, 0.975, 1)] == [1, 3, 50, 98, 100]


def test_the_mean_over_workloads_has_the_interval_of_its_drawings():
    drawn = [[1.0] * 50 + [4.0] * 50, [4.0] * 50 + [16.0] * 50]
    assert medians.mean_of_medians([2, 8], drawn) == Estimate(pytest.approx(4), pytest.approx(2), pytest.approx(8), 2)


def test_the_interval_of_a_mean_is_narrower_with_more_rounds():
    source = random.Random(5)

    def width(rounds):
        rows = [np.array([source.uniform(0.5, 1.5) for _ in range(rounds)]) for _ in range(10)]
        drawn = [medians.drawn_medians(row, medians.draws(rounds)) for row in rows]
        found = medians.mean_of_medians([medians.median(row).middle for row in rows], drawn)
        assert found.low <= found.middle <= found.high
        return found.high - found.low

    assert width(40) < width(5)
