# SPDX-License-Identifier: MIT OR Apache-2.0
"""Addresses of code with their names."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

# Functions of an allocator that programs call, as a pattern.
ENTRIES = (
    r"(__libc_)?(m|c|re|v|pv)alloc$|(posix_)?memalign$|aligned_alloc$|reallocarray$|operator new"
)


class Line(NamedTuple):
    """A function at an address. Functions that were inlined there have a line each."""

    function: str
    file: str = ""
    line: int = 0
    linker_name: str = ""  # as the object file has it: mangled in C++

    @property
    def place(self) -> str:
        """file.c:12, the file without its directory; what is not known is left out."""
        name = self.file.rpartition("/")[2]
        return f"{name}:{self.line}" if name and self.line else name


@dataclass(frozen=True)
class Region:
    """A part of a file that is mapped as code."""

    start: int
    limit: int
    offset: int
    path: str
    build_id: str = ""


@dataclass(frozen=True, eq=False)
class Location:
    """An address of code, made once; `lines` begins with the innermost inlined function."""

    address: int
    lines: tuple[Line, ...]
    region: Region | None = None


Stack = tuple[Location, ...]  # the innermost first


def lines_of(stack: Stack) -> Iterator[Line]:
    """The innermost first, with inlined ones."""
    for location in stack:
        yield from location.lines
