# SPDX-License-Identifier: MIT OR Apache-2.0
"""docs/guide/kernels.md: a row for each guest, and what failed there.

Results are under build/ and the page is in the repository, so a machine that ran some guests keeps
the rows of those that others ran: rows and failures begin with the guest's name. What stands
before the table is written by hand, in the page.
"""

import re
from collections.abc import Iterable

from terrace.vm.results import Outcome
from terrace.vm.rows import Row

_TABLE = """| guest | kernel | glibc | rung | passed | failed | skipped | outcome | stress on | watched | foreign | date | commit |
|---|---|---|---|--:|--:|--:|---|---|--:|---|---|---|
"""
_COLUMNS = 13
_OF_GUEST = re.compile(r"(?:\| |- )`([a-z0-9_.-]+)`")


def _rungs(outcome: Outcome) -> str:
    """Those on which the oracle stress ran to its end."""
    ran = {
        name.split(".")[1]
        for name, result in outcome.results.items()
        if name.startswith("stress.") and result == "passed"
    }
    return (
        ", ".join(rung for rung in ("mm_cid", "cpu_id", "getcpu", "thread") if rung in ran) or "-"
    )


def _foreign(outcome: Outcome) -> str:
    """Of the traffic between last-level caches, on all rungs; within one cache nothing is foreign."""
    said = "".join(text for name, text in outcome.outputs.items() if name.startswith("vm.traffic"))
    pairs = re.findall(r"(\d+) blocks taken out, (\d+) foreign", said)
    between = [(int(taken), int(foreign)) for taken, foreign in pairs if foreign != "0"]
    if not between:
        return "one cache" if pairs else "-"
    return f"{sum(f for _, f in between):,} of {sum(t for t, _ in between):,}"


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _line(row: Row, outcome: Outcome) -> str:
    counts = [str(outcome.count(result)) for result in ("passed", "failed", "skipped")]
    known = (outcome.kernel or "-", outcome.libc.removeprefix("glibc ") or "-", outcome.rung or "-")
    about = (_rungs(outcome), f"{outcome.operations:,}", _foreign(outcome))
    when = (outcome.date, outcome.commit)
    return _row([f"`{row.name}`", *known, *counts, outcome.verdict, *about, *when])


def _failures(row: Row, outcome: Outcome) -> list[str]:
    return [
        f"- `{row.name}`: `{name}`: {reason}"
        for name, reason in outcome.reasons.items()
        if outcome.results[name] == "failed"
    ]


def kept(page: str) -> dict[str, list[str]]:
    """Guest -> its line in the table and the lines of what failed there, of an earlier page."""
    lines: dict[str, list[str]] = {}
    for line in page.splitlines():
        match = _OF_GUEST.match(line)
        if match and " | not run | " not in line:
            lines.setdefault(match[1], []).append(line)
    return lines


def _not_run(row: Row) -> str:
    return _row([f"`{row.name}`", *[""] * 6, "not run", *[""] * (_COLUMNS - 8)])


def page(rows: Iterable[Row], outcomes: dict[str, Outcome], earlier: str) -> str:
    """In the order of the rows; of a guest without an outcome what the earlier page said."""
    said = kept(earlier)
    table, failures = [], []
    for row in rows:
        if row.name in outcomes:
            outcome = outcomes[row.name]
            table.append(_line(row, outcome))
            failures += _failures(row, outcome)
        else:
            line, *failed = said.get(row.name) or [_not_run(row)]
            table.append(line)
            failures += failed
    end = ["", "## What failed", "", *failures] if failures else []
    return earlier.partition(_TABLE)[0] + _TABLE + "\n".join([*table, *end]) + "\n"
