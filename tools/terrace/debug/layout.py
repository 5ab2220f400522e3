# SPDX-License-Identifier: MIT OR Apache-2.0
"""The descriptors that the library exports (src/base/descriptor.h): offsets by name."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from terrace.debug.memory import Memory, UnreadableError
from terrace.errors import TerraceError

_VERSION = 1

_MAGIC_BYTES = 16
_HEADER = struct.Struct("<16s6I")
_ADDRESS = struct.Struct("<24sQ")
_FIELD = struct.Struct("<28s3I")


@dataclass(frozen=True)
class Field:
    """`count` elements of `size` bytes at `offset`; of size 0 a constant, its value is `offset`."""

    offset: int
    size: int
    count: int


def _text(raw: bytes) -> str:
    return raw.partition(b"\0")[0].decode("ascii", "replace")


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
        if _text(magic) != self.magic:
            raise TerraceError(f"no descriptor of Terrace at {address:#x}")
        if version != _VERSION:
            raise TerraceError(
                f"the process has descriptors of version {version}, this is for version "
                f"{_VERSION}: use the terrace command of the same release as its library"
            )
        at = address + header
        raw = memory.read(at, address_bytes * addresses)
        self._addresses = {
            _text(name): value
            for name, value in (
                _ADDRESS.unpack_from(raw, i * address_bytes) for i in range(addresses)
            )
        }
        raw = memory.read(at + len(raw), field_bytes * fields)
        self._fields = {
            _text(name): Field(*rest)
            for name, *rest in (_FIELD.unpack_from(raw, i * field_bytes) for i in range(fields))
        }
        try:
            self.library_version = _text(memory.read(self.address("version"), 16))
        except UnreadableError:
            self.library_version = "unknown"

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

    def within(self, raw: bytes, name: str) -> int:
        """Of a field in the bytes of what it is part of."""
        field = self.field(name)
        return int.from_bytes(raw[field.offset : field.offset + field.size], "little")


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

    def text(self, raw: bytes, name: str) -> str:
        field = self.field(name)
        return _text(raw[field.offset : field.offset + field.size * field.count])
