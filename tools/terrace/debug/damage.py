# SPDX-License-Identifier: MIT OR Apache-2.0
"""Memory that is damaged may say anything: then there is one line, not a traceback."""

import contextlib
from collections.abc import Iterator

from terrace.errors import TerraceError


@contextlib.contextmanager
def expected(what: str) -> Iterator[None]:
    """Around what decodes."""
    try:
        yield
    except (ArithmeticError, LookupError, MemoryError, ValueError) as error:
        kind = type(error).__name__
        raise TerraceError(
            f"{what}: what is known of the heap makes no sense, so it is damaged, or it changed "
            f"while it was read ({kind}: {error})"
        ) from error
