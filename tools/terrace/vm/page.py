# SPDX-License-Identifier: MIT OR Apache-2.0
"""docs/guide/kernels.md: a row for each guest, and what failed there.

Results are under build/ and the page is in the repository, so a machine that ran some guests keeps
the rows of those that others ran: rows and failures begin with the guest's name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from terrace.vm.results import Outcome
from terrace.vm.rows import ROWS, Row

_INTRODUCTION = """# Kernels and machines

On which Linux kernels and machines has Terrace been tried, and what came out? No kernel version
is called fit without its run: one that has no row here with a result was not tried.

`./terrace test vm` boots Debian's kernels in emulated machines (qemu), runs tests in each, and
writes this page. A guest's name is the ISA, the Debian suites of its kernel and of its C library,
and its machine; `--filter REGEX` runs some of them.

What runs in a guest:

- the oracle stress: threads allocate and free, a program beside them knows which memory belongs
  to whom; also with forks and signals (storm), and while CPUs are unplugged and come back,
- the restartable sequences with delays built in, and five broken versions of them, which the same
  test must find,
- the unit tests, and the map of the machine that Terrace makes beside the one that hwloc makes,
- blocks that travel from one CPU to another, counted by Terrace's statistics,
- programs in unusual surroundings (sandboxes, no `/proc`, a C library that leaves rseq alone),
- on {full} also the API, misuse, and more surroundings, on each rung
  of the [fallback ladder](options.md), and unit tests that only calculate.

Left out is what takes minutes in an emulated machine, or says nothing there: programs that fork
all the time, searches for a memory limit, measurements of resident memory, and the comparison of
the whole interface with the C library's, byte by byte.

"Stopped in" a test means that the guest came to its end there. A guest with a kernel of 7.3 and
8 CPUs, from which CPUs are taken away under load, stops in a panic of the kernel (`int3` in
`update_se`, a place that the kernel was rewriting at that moment): emulated processors do not see
such a change all at once. The tests before it have ended.

**What emulation shows** is how programs, C library and kernel get on with each other. It does not
show the memory order of the hardware, nor speed.

The columns: *rung* is the way to CPU-local memory that Terrace chose there by itself. *Outcome*
is "passed" only if each test that was planned has a result and none failed; "N not run" means
that the guest's time was over. *Stress on* are the rungs on which the oracle stress ran to its
end, *watched* how many of its operations the oracle saw. *Foreign* is how many of the blocks that
went from one last-level cache to another Terrace counted as foreign; within one cache none may
be. *Commit* is what was built. A skipped test is one whose rung, system call or assertion does
not exist there.

"""
_TABLE = """| guest | kernel | glibc | rung | passed | failed | skipped | outcome | stress on | watched | foreign | date | commit |
|---|---|---|---|--:|--:|--:|---|---|--:|---|---|---|
"""
_COLUMNS = 13
_OF_GUEST = re.compile(r"(?:\| |- )`([a-z0-9_.-]+)`")


def _and(names: Iterable[str]) -> str:
    *most, last = (f"`{name}`" for name in names)
    return ",\n  ".join(most) + f"\n  and {last}"


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


def page(rows: Iterable[Row], outcomes: dict[str, Outcome], earlier: dict[str, list[str]]) -> str:
    """In the order of the rows; of a guest without an outcome what an earlier page said."""
    table, failures = [], []
    for row in rows:
        if row.name in outcomes:
            outcome = outcomes[row.name]
            table.append(_line(row, outcome))
            failures += _failures(row, outcome)
        else:
            line, *failed = earlier.get(row.name) or [_not_run(row)]
            table.append(line)
            failures += failed
    end = ["", "## What failed", "", *failures] if failures else []
    introduction = _INTRODUCTION.replace("{full}", _and(row.name for row in ROWS if not row.brief))
    return introduction + _TABLE + "\n".join([*table, *end]) + "\n"
