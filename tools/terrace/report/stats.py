# SPDX-License-Identifier: MIT OR Apache-2.0
"""The statistics that processes leave behind (JSON, schema 1): reading them and adding them up.

Everything follows the `columns` of the JSON: one that the library adds appears by itself.
"""

import json
import os
from dataclasses import dataclass, field
from typing import Any

SCHEMA = 1

# One object of the JSON; its shape is the library's contract, docs/guide/statistics.md.
Statistics = dict[str, Any]


@dataclass
class Collection:
    """What a run left in its directory."""

    processes: list[Statistics] = field(default_factory=list)
    unreadable: int = 0


def load_directory(directory: str) -> Collection:
    """Reads every file; one that was cut short (its process was killed) counts as unreadable."""
    result = Collection()
    for name in sorted(os.listdir(directory)):
        try:
            with open(os.path.join(directory, name), encoding="utf-8", errors="replace") as file:
                statistics = json.load(file)
        except (OSError, ValueError):
            result.unreadable += 1
            continue
        if isinstance(statistics, dict) and statistics.get("schema") == SCHEMA:
            result.processes.append(statistics)
        else:
            result.unreadable += 1
    return result


def _add(into: dict[str, int], values: dict[str, int]) -> None:
    for key, value in values.items():
        into[key] = into.get(key, 0) + value


def _total_levels(processes: list[Statistics]) -> list[Statistics]:
    # In the order of their first appearance: without rseq the level nearest is `thread`.
    levels: dict[str, dict[str, int]] = {}
    for statistics in processes:
        for row in statistics["levels"]:
            _add(levels.setdefault(row["level"], {}), row["values"])
    return [{"level": name, "values": values} for name, values in levels.items()]


def _total_classes(processes: list[Statistics]) -> list[Statistics]:
    classes: dict[int, Statistics] = {}
    for statistics in processes:
        for row in statistics.get("classes", []):
            total = classes.setdefault(
                row["size"], {"class": row["class"], "size": row["size"], "levels": {}}
            )
            for level, values in row["levels"].items():
                _add(total["levels"].setdefault(level, {}), values)
    return [classes[size] for size in sorted(classes)]


def total(processes: list[Statistics], main_pid: int) -> Statistics:
    """One object of the same schema for all processes, plus how many there were and their rungs.

    What describes the set-up (rung, placement, ...) is taken from the program that was started, if
    it wrote its statistics; `slots` is the largest. A sum of gauges is over the ends of processes,
    not over one instant.
    """
    main = next((p for p in processes if p.get("pid") == main_pid), processes[0])
    memory: dict[str, int] = {}
    rungs: dict[str, int] = {}
    for statistics in processes:
        _add(memory, statistics.get("memory", {}))
        rungs[statistics["rung"]] = rungs.get(statistics["rung"], 0) + 1
    return {
        **main,
        "slots": max(p.get("slots", 0) for p in processes),
        "levels": _total_levels([main, *(p for p in processes if p is not main)]),
        "classes": _total_classes(processes),
        "memory": memory,
        "processes": len(processes),
        "rungs": rungs,
    }
