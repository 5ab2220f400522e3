# SPDX-License-Identifier: MIT OR Apache-2.0
"""ugrep: where a number stands in the memory of the process."""

from collections.abc import Iterator

import numpy as np

from terrace.debug.memory import Copy
from terrace.debug.umem.context import Context, split
from terrace.errors import TerraceError

_MOST = 10_000  # lines


def places(memory: Copy, value: int) -> Iterator[int]:
    """Aligned words that hold it, in order of addresses."""
    for segment in memory.segments:
        skip = -segment.start % 8
        data = segment.data[skip:]
        words = data[: len(data) // 8 * 8].view(np.uint64)
        for i in np.flatnonzero(words == np.uint64(value)).tolist():
            yield segment.start + skip + 8 * i


def ugrep(context: Context, words: list[str]) -> list[str]:
    rest = split(words, "", "", 1, "ugrep VALUE").rest
    if not rest:
        raise TerraceError("usage: ugrep VALUE", 2)
    value = context.evaluate(rest[0])
    found = []
    for i, place in enumerate(places(context.moment.capture.memory, value)):
        if i == _MOST:
            found.append(f"and more than these {_MOST:,}")
            break
        found.append(f"{place:x}")
    return found or [f"{value:#x} is nowhere"]
