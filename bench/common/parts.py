# SPDX-License-Identifier: MIT OR Apache-2.0
"""A driver of several parts, of which some may be asked for, on one page."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence

from page import Page
from report import arguments

Part = Callable[[argparse.Namespace, Page], None]


def run(
    description: str | None, argv: Sequence[str], parts: Mapping[str, Part], name: str, title: str, can_store: bool = True
) -> int:
    """Parts by the names that they are asked for by. `can_store`: with --stored they show what was measured before."""
    stored = can_store and "--stored" in argv
    options = arguments(description, [a for a in argv if a not in parts and not (stored and a == "--stored")], rounds=5)
    options.stored = stored
    page = Page(options, name, title)
    for part in [a for a in argv if a in parts] or parts:
        parts[part](options, page)
    page.close()
    return 0
