# SPDX-License-Identifier: MIT OR Apache-2.0
"""The descriptors that the library exports (src/base/descriptor.h): offsets by name."""

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from terrace.debug.memory import Memory, UnreadableError
from terrace.errors import TerraceError

_VERSION = 1

_MAGIC_BYTES = 16
_NUMBERS = (1, 2, 4, 8)  # bytes; others are structures
_MOST_ROWS = 1 << 26  # of more a list is damaged

Ints = npt.NDArray[np.int64]
Rows = npt.NDArray[np.void]  # structures one behind the other, their fields by name
Row = dict[str, Any]  # of one: numbers, and lists of them
Kind = TypeVar("Kind")

_HEADER = struct.Struct("<16s6I")
_ADDRESS = struct.Struct("<24sQ")
_FIELD = struct.Struct("<28s3I")


@dataclass(frozen=True)
class Field:
    """`count` elements of `size` bytes at `offset`; of size 0 a constant, its value is `offset`."""

    offset: int
    size: int
    count: int


def text(raw: Iterable[int]) -> str:
    """Characters up to the first NUL."""
    return bytes(raw).partition(b"\0")[0].decode("ascii", "replace")


def ints(rows: Rows, name: str) -> Ints:
    """A field of all rows; of several elements a table."""
    return rows[name].astype(np.int64)


def filled(kind: type[Kind], row: Row, /, **more: Any) -> Kind:
    """A dataclass, with what the structure has under the same names."""
    own = {f.name: row[f.name] for f in fields(kind) if f.name in row}  # type: ignore[arg-type]
    return kind(**{**own, **more})


def _not_described(name: str) -> TerraceError:
    return TerraceError(f"the library does not describe {name}: is it an older one?")


class Description:
    """What one descriptor says."""

    magic: str

    @classmethod
    def place_in(cls, memory: Memory, start: int, end: int) -> int | None:
        """Where one begins between two addresses, by its first word."""
        try:
            data = memory.read(start, end - start)
        except TerraceError:  # not all of it is there
            data = memory.sparse(start, end - start).tobytes()
        at = data.find(cls.magic.encode().ljust(_MAGIC_BYTES, b"\0"))
        return None if at < 0 else start + at

    def __init__(self, memory: Memory, address: int) -> None:
        magic, version, header, address_bytes, addresses, field_bytes, fields = _HEADER.unpack(
            memory.read(address, _HEADER.size)
        )
        self._rows: dict[tuple[str, str, int], np.dtype[np.void]] = {}
        if text(magic) != self.magic:
            raise TerraceError(f"no descriptor of Terrace at {address:#x}")
        if version != _VERSION:
            raise TerraceError(
                f"the process has descriptors of version {version}, this is for version "
                f"{_VERSION}: use the terrace command of the same release as its library"
            )
        at = address + header
        raw = memory.read(at, address_bytes * addresses)
        self._addresses = {
            text(name): value
            for name, value in (
                _ADDRESS.unpack_from(raw, i * address_bytes) for i in range(addresses)
            )
        }
        raw = memory.read(at + len(raw), field_bytes * fields)
        self._fields = {
            text(name): Field(*rest)
            for name, *rest in (_FIELD.unpack_from(raw, i * field_bytes) for i in range(fields))
        }
        try:
            self.library_version = text(memory.read(self.address("version"), 16))
        except UnreadableError:
            self.library_version = "unknown"

    def describes(self, name: str) -> bool:
        """Whether the library is new enough to have it."""
        return name in self._addresses or name in self._fields

    def address(self, name: str) -> int:
        if name not in self._addresses:
            raise _not_described(name)
        return int(self._addresses[name])

    def field(self, name: str) -> Field:
        if name not in self._fields:
            raise _not_described(name)
        return self._fields[name]

    def constant(self, name: str) -> int:
        return self.field(name).offset

    def offset(self, name: str) -> int:
        return self.field(name).offset

    def value(self, memory: Memory, base: int, name: str) -> int:
        """Of a field of what begins at `base`."""
        field = self.field(name)
        return memory.number(base + field.offset, field.size)

    # The type is quoted as numpy 1.21, which Ubuntu 22.04 has, can not evaluate it.
    def row(self, name: str, whole: str = "", at: int = 0) -> "np.dtype[np.void]":
        """numpy's description of a structure, or of one at an offset in a `whole` one."""
        key = (name, whole, at)
        if key not in self._rows:
            inner = {n: f for n, f in self._fields.items() if n.startswith(f"{name}.") and f.size}
            kinds = (f"<u{f.size}" if f.size in _NUMBERS else f"V{f.size}" for f in inner.values())
            self._rows[key] = np.dtype(
                {
                    "names": [n.removeprefix(f"{name}.") for n in inner],
                    "formats": [
                        (kind, f.count) if f.count > 1 else kind
                        for kind, f in zip(kinds, inner.values(), strict=True)
                    ],
                    "offsets": [at + f.offset for f in inner.values()],
                    "itemsize": self.field(whole or name).size,
                }
            )
        return self._rows[key]

    def rows(self, memory: Memory, name: str, address: int, count: int) -> Rows:
        """So many structures; what is not there is zero."""
        row = self.row(name)
        return memory.sparse(address, count * row.itemsize).view(row)

    def read(self, memory: Memory, name: str, address: int) -> Row:
        """One structure. UnreadableError: it is not there."""
        return self.decode(name, memory.read(address, self.field(name).size))

    def decode(self, name: str, raw: bytes) -> Row:
        row = self.row(name)
        values = np.frombuffer(raw, row, 1)[0].tolist()
        return dict(zip(row.names or (), values, strict=True))

    def linked(
        self, memory: Memory, name: str, first: int, link: str, most: int = _MOST_ROWS
    ) -> Iterator[tuple[int, Row]]:
        """A list of structures and where they are, as far as it can be followed."""
        at, seen = first, {0}
        while at not in seen and len(seen) <= most:
            seen.add(at)
            try:
                row = self.read(memory, name, at)
            except UnreadableError:
                return
            yield at, row
            at = row[link]


class Layout(Description):
    """Of the heap: src/introspect/descriptors.h."""

    magic = "terrace-debug"

    def __init__(self, memory: Memory, address: int) -> None:
        super().__init__(memory, address)
        self.heap = self.address("heap")

    def of_heap(self, memory: Memory, name: str) -> int:
        """The value of a field of the heap itself."""
        return self.value(memory, self.heap, name)

    def is_ready(self, memory: Memory) -> bool:
        """Whether anything was allocated yet."""
        return self.of_heap(memory, "heap.ready") != 0


class UmemLayout(Description):
    """Of object caches and arenas: src/umem/descriptors.h."""

    magic = "terrace-umem"
