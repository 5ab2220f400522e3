# SPDX-License-Identifier: MIT OR Apache-2.0
"""Memory that is damaged may say anything: then there is one line, not a traceback."""

import contextlib
import struct
from collections.abc import Iterator

from terrace.errors import TerraceError

# What numbers that make no sense end in. Where a description of structures is damaged, numpy finds
# that they have other types.
NONSENSE = (ArithmeticError, LookupError, MemoryError, TypeError, ValueError, struct.error)


@contextlib.contextmanager
def expected(what: str) -> Iterator[None]:
    """Around what decodes."""
    try:
        yield
    except NONSENSE as error:
        kind = type(error).__name__
        raise TerraceError(
            f"{what}: what is known of the heap makes no sense, so it is damaged, or it changed "
            f"while it was read ({kind}: {error})"
        ) from error
