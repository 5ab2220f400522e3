# SPDX-License-Identifier: MIT OR Apache-2.0
"""Files of other viewers: collapsed stacks (flamegraph.pl, inferno), and speedscope's JSON."""

import json
from typing import Any

from terrace.debug.sampled.frames import Line, Stack, lines_of
from terrace.profile.model import Profile

_SCHEMA = "https://www.speedscope.app/file-format-schema.json"


def collapsed(profile: Profile) -> str:
    """A line for each stack, the outermost function first, then its bytes."""
    totals: dict[str, int] = {}
    for stack, values in profile.stacks.items():
        names = [line.function.replace(";", ":").replace("\n", " ") for line in lines_of(stack)]
        key = ";".join(reversed(names))
        totals[key] = totals.get(key, 0) + round(profile.shown(values)[1])
    return "".join(f"{key} {size}\n" for key, size in sorted(totals.items()) if size > 0)


class _Frames:
    """speedscope's table of functions: each once."""

    def __init__(self) -> None:
        self.table: list[dict[str, Any]] = []
        self._numbers: dict[Line, int] = {}

    def outermost_first(self, stack: Stack) -> list[int]:
        return [self._number(line) for line in reversed(list(lines_of(stack)))]

    def _number(self, line: Line) -> int:
        if line not in self._numbers:
            self._numbers[line] = len(self.table)
            frame: dict[str, Any] = {"name": line.function}
            if line.file:
                frame["file"] = line.file
            if line.line:
                frame["line"] = line.line
            self.table.append(frame)
        return self._numbers[line]


def speedscope(profile: Profile) -> str:
    """Bytes and blocks as two profiles of one file."""
    frames = _Frames()
    stacks = [(frames.outermost_first(stack), values) for stack, values in profile.stacks.items()]
    profiles = []
    for at, (kind, unit) in ((1, ("bytes", "bytes")), (0, ("blocks", "none"))):
        weighed = [(stack, round(profile.shown(values)[at])) for stack, values in stacks]
        weighed = sorted((pair for pair in weighed if pair[1] > 0), key=lambda pair: pair[0])
        weights = [weight for _, weight in weighed]
        profiles.append(
            {
                "type": "sampled",
                "name": f"{kind} {profile.what}",
                "unit": unit,
                "startValue": 0,
                "endValue": sum(weights),
                "samples": [stack for stack, _ in weighed],
                "weights": weights,
            }
        )
    document = {
        "$schema": _SCHEMA,
        "exporter": "terrace profile",
        "name": profile.title,
        "activeProfileIndex": 0,
        "shared": {"frames": frames.table},
        "profiles": profiles,
    }
    return json.dumps(document, separators=(",", ":")) + "\n"
