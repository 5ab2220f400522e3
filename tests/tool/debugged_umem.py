# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the debugger's tests on object caches share; fixtures are in umem_fixtures.py."""

import re

import pytest
from debugged import BUILD, report

UMEM, UMEM_MALLOC = BUILD / "libumem.so", BUILD / "libumem_malloc.so"
needs_umem = pytest.mark.skipif(not UMEM.exists(), reason="build/release has no libumem.so")

# Which library serves the program; the second time its malloc as well.
LIBRARIES = {"umem": "", "umem_malloc": str(UMEM_MALLOC)}
LEAKED_BY_SIZE = 3


def rows(lines: list[str]) -> dict[str, list[str]]:
    return {line.split()[0]: line.split() for line in lines if line.strip()}


def total_of(lines: list[str]) -> int:
    match = next(m for m in (re.search(r": ([\d,]+) blocks? leaked", line) for line in lines) if m)
    return int(match[1].replace(",", ""))


def umem(target: object, *words: object) -> list[str]:
    return report("umem", target, *words)


def addresses(lines: list[str]) -> list[int]:
    return [int(line, 16) for line in lines]
