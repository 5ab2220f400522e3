# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the numbers say, in sentences made from them."""

from collections.abc import Iterator

import medians
from catalogue import GROUPS
from interleave import AGAIN
from metrics import PEAK, SETTLED, TIME, Metric
from summary import LOST, ONE, OURS, WON, Comparison


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _best_mean(data: Comparison, metric: Metric, section: str) -> str | None:
    means = data.comparable_means(metric, section)
    if len(means) < 2:
        return None
    ranked = sorted(means, key=lambda a: means[a])
    told = f"{metric.title}, {section}: {ranked[0]} is the best ({means[ranked[0]]:.2f} of {data.reference})"
    place = ranked.index(OURS) if OURS in ranked else 0
    if place:
        behind = means[OURS] / means[ranked[0]]
        told += f"; Terrace is number {place + 1} of {len(ranked)} ({means[OURS]:.2f}), {behind:.2f} times the best"
    elif OURS in ranked:
        told += f", before {ranked[1]} ({means[ranked[1]]:.2f})"
    return told + "."


def _score(data: Comparison, metric: Metric) -> str | None:
    found = data.against_others(metric)
    if not found:
        return None
    best = sum(x.ratio.middle <= WON for x in found.values())
    return (
        f"{metric.title.capitalize()}: of {len(found)} workloads Terrace is the best, or within {100 * (WON - 1):.0f} % of it, in "
        f"{best}, and needs more than {LOST:.2f} times the best other in {len(data.losses(metric))}."
    )


def _noise(data: Comparison) -> str | None:
    time, memory = data.noise(TIME), data.noise(PEAK)
    if time is None or memory is None:
        return None
    mean = data.mean(TIME, "all", AGAIN)
    told = (
        f"Noise: {data.reference} measured twice differs from itself by less than {percent(time - 1)} in time and "
        f"{percent(memory - 1)} in peak memory, in 95 % of the workloads; single workloads that differ by less show nothing."
    )
    return told + (f" In the mean over all workloads it differs by {percent(abs(mean.middle - 1))}." if mean else "")


def findings(data: Comparison) -> Iterator[str]:
    sections = [s for s in ("all", *GROUPS, ONE) if s in data.sections]
    candidates = [
        *(_best_mean(data, TIME, s) for s in sections),
        *(_best_mean(data, m, "all") for m in (PEAK, SETTLED)),
        *(_score(data, m) for m in (TIME, PEAK, SETTLED)),
        _noise(data),
    ]
    yield from (text for text in candidates if text)
    if data.rounds < medians.ENOUGH:
        yield f"With fewer than {medians.ENOUGH} rounds an interval is all values from the smallest to the largest, less than 95 %."
    for failure in data.ours_failed():
        yield f"Terrace failed in {failure.workload}, {failure.times} of {failure.runs} runs: {failure.reason}"
