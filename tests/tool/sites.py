# SPDX-License-Identifier: MIT OR Apache-2.0
"""programs/sites.c holds known bytes: what a profile of it says.

At a period of 64 KiB an estimate of 16 MiB is made of 256 samples, so its standard error is 6 %:
the bounds here are 5 of these.
"""

from pathlib import Path

from debugged import PROGRAMS
from terrace.cli import main
from terrace.debug.sampled.frames import lines_of
from terrace.profile.pprof import load

MIB = 1 << 20
SAMPLED = {"TERRACE_PROFILE": "65536"}
KEPT = {"make_order": 16 * MIB, "read_pages": 32 * MIB, "lose": 8 * MIB}


def line_of(text: str) -> int:
    lines = (PROGRAMS / "sites.c").read_text(encoding="utf-8").splitlines()
    return next(i for i, line in enumerate(lines, 1) if text in line and "//" not in line)


def by_function(path: Path, allocated: bool = False) -> dict[str, float]:
    """Bytes by the innermost function, of what sites.c does."""
    found: dict[str, float] = {}
    for stack, values in load(str(path)).stacks.items():
        name = next(lines_of(stack)).function
        size = values.allocated_bytes if allocated else values.bytes
        found[name] = found.get(name, 0) + size
    return found


def expect_kept(found: dict[str, float]) -> None:
    for name, size in KEPT.items():
        error = (size * 65536) ** 0.5
        assert abs(found.get(name, 0) - size) < 5 * error, found
    assert sum(found.values()) < 70 * MIB, found


def profiled(directory: Path, *words: object) -> dict[str, float]:
    path = directory / "a.pb.gz"
    assert main(["profile", "-o", str(path), *map(str, words)]) == 0
    return by_function(path)
