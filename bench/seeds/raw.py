# SPDX-License-Identifier: MIT OR Apache-2.0
"""Raw numbers of an experiment: measured now and kept, or, with --stored, those that an earlier run has kept."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable

from interleave import Rounds, save_raw


def measured(options: argparse.Namespace, name: str, measure: Callable[[], Rounds]) -> Rounds:
    path = options.out / f"seeds-{name}.json"
    if options.stored:
        if not path.exists():
            raise SystemExit(f"there is no {path}: run without --stored first")
        kept: Rounds = json.loads(path.read_text())
        return kept
    results = measure()
    save_raw(options.out, path.stem, results)
    return results


def names(results: Rounds) -> list[str]:
    """What was measured, in its order, without the second run of the first."""
    return list(results)[:-1]
