# SPDX-License-Identifier: MIT OR Apache-2.0
"""Real programs of the comparison: servers under a load from outside, interpreters, compilers, databases and tools."""

from pathlib import Path

import commands
import interpreters
import postgresql
import redis_load
from recipe import Recipe, find, workload
from workload import Workload


def _recipes() -> list[Recipe]:
    return [*interpreters.recipes(), *commands.recipes()]


def _absent(needs: tuple[str, ...]) -> list[str]:
    return [name for name in needs if find(name) is None]


def workloads(build: Path) -> list[Workload]:
    """Those whose programs are there."""
    servers = [] if _absent(redis_load.NEEDS) else redis_load.workloads(build)
    servers += [] if postgresql.missing() else postgresql.workloads(build)
    return [*servers, *(workload(build, recipe) for recipe in _recipes() if not _absent(recipe.needs))]


def missing() -> list[str]:
    """A line for each workload that is left out: what is not there."""
    lines = [f"{recipe.name}: no {', '.join(absent)}" for recipe in _recipes() if (absent := _absent(recipe.needs))]
    if absent := _absent(redis_load.NEEDS):
        lines.append(f"redis: no {', '.join(absent)}")
    if reason := postgresql.missing():
        lines.append(f"postgresql: no {reason}")
    return lines
