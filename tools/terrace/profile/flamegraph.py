# SPDX-License-Identifier: MIT OR Apache-2.0
"""One page that needs no network: d3-flame-graph and the profile are within it."""

import html
import json
from pathlib import Path
from typing import Any

from terrace.debug.sampled.frames import Line, lines_of
from terrace.profile.model import Profile
from terrace.report.cells import human_bytes

_VIEWER = Path(__file__).with_name("viewer")
_HINT = "Width is bytes. Outermost functions are on top. Click to zoom in, on top to zoom out."
_HINT_OF_A_DIFFERENCE = "Width is bytes now. Red has grown, blue has shrunk; the more, the darker."


class _Node:
    """A function as called from those above it."""

    def __init__(self, line: Line) -> None:
        self.line = line
        self.blocks = self.bytes = self.delta = 0.0
        self.callees: dict[tuple[str, str], _Node] = {}

    def callee(self, line: Line) -> "_Node":
        return self.callees.setdefault((line.function, line.place), _Node(line))

    def as_data(self) -> dict[str, Any]:
        data: dict[str, Any] = {
            "name": self.line.function,
            "value": round(self.bytes),
            "blocks": round(self.blocks),
        }
        if self.line.place:
            data["place"] = self.line.place
        if self.delta:
            data["delta"] = round(self.delta)
        if self.callees:
            data["children"] = [
                node.as_data() for node in self.callees.values() if round(node.bytes) > 0
            ]
        return data


def _tree(profile: Profile, before: Profile | None) -> _Node:
    root = _Node(Line("all"))
    for each, sign in ((profile, 1), *([(before, -1)] if before else [])):
        for stack, values in each.stacks.items():
            objects, size = profile.shown(values)
            node = root
            for line in (None, *reversed(list(lines_of(stack)))):
                node = node if line is None else node.callee(line)
                node.delta += sign * size
                if sign > 0:
                    node.bytes += size
                    node.blocks += objects
    return root


def page(profile: Profile, before: Profile | None = None) -> str:
    """With `before` coloured by what grew since."""
    root = _tree(profile, before)
    summary = profile.summary()
    if before is not None:
        sign = "-" if root.delta < 0 else "+"
        summary += f", {sign}{human_bytes(round(abs(root.delta)))} since {before.title}"
    document = {"root": root.as_data(), "differs": before is not None}
    data = json.dumps(document, separators=(",", ":"))
    parts = {
        "LICENSES": (_VIEWER / "LICENSES.txt").read_text(encoding="utf-8").replace("--", "- -"),
        "STYLE": (_VIEWER / "d3-flame-graph.css").read_text(encoding="utf-8"),
        "SCRIPT": (_VIEWER / "d3-flame-graph.js").read_text(encoding="utf-8"),
        "TITLE": html.escape(profile.title),
        "SUMMARY": html.escape(" - ".join((summary, *profile.notes))),
        "HINT": _HINT if before is None else _HINT_OF_A_DIFFERENCE,
        "DATA": data.replace("<", "\\u003c"),
    }
    text = (_VIEWER / "flamegraph.html").read_text(encoding="utf-8")
    pieces = text.split("@")  # @NAME@ stands for a part; the page has no other @
    return "".join(parts.get(piece, piece) for piece in pieces)
