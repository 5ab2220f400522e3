# SPDX-License-Identifier: MIT OR Apache-2.0
"""Which tests of a guest one process runs in turn: in an emulated machine starting one takes longer
than most tests. tests/vm/guest.py reads the results from what the process writes.
"""

import json
from typing import Any

from terrace.vm.tests import GuestTest, rank

_FILTER = "--gtest_filter="
_GTEST_LINE = r"\[ +(?P<result>OK|FAILED|SKIPPED) +\] (?P<part>\S+?)(,.*)? \(\d+ ms\)$"
_ENV_LINE = r"^(?P<part>\w+): (?P<result>passed|skipped|FAILED)\b.* \(\d+\.\d s\)$"

# Tests of a batch at most: the rest of them may run on another CPU meanwhile.
_TOGETHER = 8

# Seconds without a result after which the process is ended. It is more than a test needs.
_PATIENCE = 180


def _part(test: GuestTest) -> tuple[list[str], str, str, str] | None:
    """(command without what chooses the test, argument that does, how several are joined, line)"""
    *_, last = test.command
    filters = [word for word in test.command if word.startswith(_FILTER)]
    if filters and test.name.startswith("unit."):
        rest = [word for word in test.command if word != filters[0]]
        return rest, filters[0].removeprefix(_FILTER), _FILTER, _GTEST_LINE
    if any(word.endswith("/env/driver.py") for word in test.command):
        return test.command[:-1], last, "", _ENV_LINE
    return None


def batches(tests: list[GuestTest]) -> list[dict[str, Any]]:
    """What the guest is told of them; a batch has the place of its first test."""
    entries: list[dict[str, Any]] = []
    found: dict[str, dict[str, Any]] = {}
    for test in tests:
        part = _part(test)
        if part is None:
            entries.append(test.as_plan())
            continue
        command, argument, join, line = part
        about = (sorted(test.environment.items()), test.directory)
        key = json.dumps((command, about, rank(test.name), test.as_plan()["alone"]))
        if key not in found or (not join and len(found[key]["parts"]) == _TOGETHER):
            name = f"{test.name} and others"
            more = {"name": name, "command": command, "timeout": _PATIENCE}
            found[key] = {**test.as_plan(), **more, "parts": {}, "join": join, "line": line}
            entries.append(found[key])
        found[key]["parts"][argument] = test.name
    return entries
