# SPDX-License-Identifier: MIT OR Apache-2.0
"""How results are shown: ratios with their spread, figures that are to be reached, and "-" for what was left out."""

from collections.abc import Iterable
from statistics import geometric_mean, median

from interleave import AGAIN, Rounds, Spread, names, ratio
from report import Report

RATE = "rate"
PROCESSOR_RATE = "processor_rate"  # for a second of processor time; JMH does not say it
LEFT_OUT = "-"


def over(results: Rounds, ours: str, base: str, key: str = RATE, base_key: str | None = None) -> Spread | None:
    """The median of the ratios within rounds; None where there are none, or where these runs do not tell it."""
    pairs = zip(results.get(ours, ()), results.get(base, ()), strict=False)
    if not any(key in a and (base_key or key) in b for a, b in pairs):
        return None
    return ratio(results, ours, key, base, base_key)


def shown(value: Spread | None) -> str:
    return LEFT_OUT if value is None else str(value)


def middle(results: Rounds, name: str, key: str = RATE) -> float | None:
    # A run in which nothing was collected says nothing of buffers.
    found = [values[key] for values in results.get(name, ()) if values and key in values]
    return median(found) if found else None


def number(value: float | None, digits: int = 3) -> str:
    if value is None:
        return LEFT_OUT
    return f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.{digits}g}"


def rate_of(results: Rounds, name: str, per: float = 1e3, key: str = RATE) -> str:
    found = middle(results, name, key)
    return number(None if found is None else found / per)


def mean(spreads: Iterable[Spread | None]) -> float | None:
    """The geometric mean of the medians."""
    values = [s.median for s in spreads if s is not None and 0 < s.median < float("inf")]
    return geometric_mean(values) if values else None


def at_least(page: Report, what: str, found: Spread | None, limit: float) -> None:
    page.check(what, "not measured" if found is None else str(found), f">= {limit:g}", None if found is None else found.median >= limit)


def at_most(page: Report, what: str, found: Spread | None, limit: float) -> None:
    page.check(what, "not measured" if found is None else str(found), f"<= {limit:g}", None if found is None else found.median <= limit)


def noise(results: Rounds, key: str = RATE) -> str:
    """The first cell's second run over its first."""
    return shown(over(results, AGAIN, next(iter(results), ""), key))


def details(page: Report, results: Rounds, per: float = 1e3, unit: str = "thousand/s") -> None:
    """The same columns for every cell: throughput, collections, pauses, waste, foreign, memory."""
    rows = []
    for name in names(results):
        seconds = middle(results, name, "window_seconds") or middle(results, name, "seconds") or 1.0
        collections = middle(results, name, "collections") or 0.0
        pauses = middle(results, name, "pause_ms") or 0.0
        rows.append([
            name, rate_of(results, name, per), number(collections / seconds), number(pauses / collections if collections else None),
            number(100 * pauses / 1e3 / seconds), number(wasted_percent(results, name)), number(middle(results, name, "core.foreign")),
            number((middle(results, name, "peak_rss") or 0) / 2**20),
        ])
    page.table(["", unit, "collections/s", "ms each", "% of the time", "% wasted", "foreign", "peak MiB"], rows)


def wasted_percent(results: Rounds, name: str) -> float | None:
    """In TLABs and buffers, of what was collected, as the space had been filled with it."""
    wasted, collected = middle(results, name, "wasted_mib"), middle(results, name, "collected_mib")
    return 100 * wasted / collected if wasted is not None and collected else None


def per_operation(results: Rounds, name: str, key: str, scale: float = 1e6, prefix: str = "") -> float | None:
    """How much of it there is for so many operations, whatever time they took."""
    found, operations = middle(results, name, prefix + key), middle(results, name, prefix + "operations")
    return scale * found / operations if found is not None and operations else None


def foreign_percent(results: Rounds, name: str, level: str) -> float | None:
    """Of the TLABs that were taken in all rounds; None where there were none."""
    rounds = [v for v in results.get(name, ()) if v]
    taken = sum(v["tlab_refills"] for v in rounds)
    if not taken:
        return None
    return 100 * sum(v.get(f"{level}.foreign", 0) + v.get(f"{level}.neighbours", 0) for v in rounds) / taken
