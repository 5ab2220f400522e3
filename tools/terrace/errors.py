# SPDX-License-Identifier: MIT OR Apache-2.0
"""The one exception that ends the command with a message for people instead of a traceback."""


class TerraceError(Exception):
    """Says what is wrong and what to do about it; `status` is the exit status."""

    def __init__(self, message: str, status: int = 1) -> None:
        super().__init__(message)
        self.status = status
