# SPDX-License-Identifier: MIT OR Apache-2.0
"""What is told of made-up measurements is what they were made from."""

import pytest
from findings import findings
from made_up import BROKEN, FACTOR, header, measurements, stored
from metrics import PEAK, SETTLED, TIME
from store import WORK, Key, Measurement, Store
from summary import OURS, Comparison
from tables import all_tables, losses, overview, per_workload
from webpage import Content, as_markdown


@pytest.fixture(scope="module")
def exact(tmp_path_factory):
    return Comparison(stored(tmp_path_factory.mktemp("exact") / "x.jsonl", rounds=6, noise=0))


@pytest.fixture(scope="module")
def noisy(tmp_path_factory):
    return Comparison(stored(tmp_path_factory.mktemp("noisy") / "x.jsonl", rounds=9, noise=0.1))


def test_without_noise_the_ratios_are_exact(exact):
    for name, factor in FACTOR.items():
        mean = exact.mean(TIME, "all", name)
        assert (mean.low, mean.middle, mean.high) == (pytest.approx(factor),) * 3
        assert exact.mean(PEAK, "all", name).middle == pytest.approx(1 / factor)
        assert exact.mean(TIME, "all", name, to_best=True).middle == pytest.approx(factor / FACTOR[OURS])
    assert exact.noise(TIME) == pytest.approx(1)


def test_with_noise_the_intervals_hold_the_truth(noisy):
    for name, factor in FACTOR.items():
        if name != "glibc":
            mean = noisy.mean(TIME, "all", name)
            assert 0.97 * mean.low < factor < 1.03 * mean.high
            assert mean.low < mean.middle < mean.high
    assert 1 < noisy.noise(TIME) < 1.25


def test_further_thread_counts_are_in_no_mean(exact):
    assert sum(len(exact.sections[group]) for group in ("micro", "trace", "program")) == len(exact.sections["all"]) == 11
    assert "churn/8" in exact.workloads
    assert all("churn/8" not in section for section in exact.sections.values())


def test_who_was_measured_in_a_few_workloads_is_in_no_ranking(tmp_path):
    store = Store(tmp_path / "x.jsonl")
    store.begin(header())
    for measurement in measurements(6, 0):
        if measurement.key.allocator != OURS or measurement.key.workload == "churn/1":
            store.add(measurement)
    store.close()
    assert next(findings(Comparison(store))).startswith("time, all: left is the best (0.90 of glibc)")


def test_a_failure_is_told_and_the_rest_counts(exact):
    (failure,) = exact.failures
    assert (failure.workload, failure.allocator) == BROKEN
    assert failure.times == failure.runs == 6
    assert exact.mean(TIME, "all", "right").count == 10
    assert exact.mean(TIME, "all", "left").count == 11
    row = next(r for r in per_workload(exact, TIME).rows if r[0].text == "server/1")
    assert "failed 6 of 6" in [c.text for c in row]


def test_losses_are_to_the_best_other(exact):
    lost = {x.workload: x for x in exact.losses(PEAK)}
    assert len(lost) == 11
    assert lost["churn/1"].best == "right"
    assert lost["churn/1"].ratio.middle == pytest.approx(1.3 / 0.75)
    assert lost["server/1"].ratio.middle == pytest.approx(1 / 0.75)  # the one that is better failed there
    assert not exact.losses(TIME)
    assert not exact.losses(SETTLED)
    assert {row[1].text for row in losses(exact).rows} == {"peak memory"}


def test_ours_has_failed_only_where_the_reference_has_not(tmp_path):
    store = Store(tmp_path / "x.jsonl")
    store.begin(header())
    for workload, failing in (("ring/1", {"terrace"}), ("churn/1", {"terrace", "glibc"}), ("database/1", {"left"})):
        for name in FACTOR:
            failed = "broken" if name in failing else ""
            store.add(Measurement(Key(WORK, workload, name, 0), {} if failed else {"seconds": 1.0}, failed))
    assert [f.workload for f in Comparison(store).ours_failed()] == ["ring/1"]


def test_markdown_has_every_row_of_every_table(exact):
    text = as_markdown(Content("A title", "here", ["a sentence"], all_tables(exact)))
    for table in all_tables(exact):
        assert f"## {table.title}" in text
        for row in table.rows:
            assert "| " + " | ".join(str(c) for c in row) + " |" in text
    assert len(overview(exact).rows) == len(FACTOR) + 1
