# SPDX-License-Identifier: MIT OR Apache-2.0
"""The files that a process has mapped, and their build ids, as they are in its memory."""

import bisect
import os
import struct
from dataclasses import dataclass

from terrace.debug.memory import Mapping, Memory, UnreadableError
from terrace.debug.sampled.frames import Region

_PROGRAM_HEADERS = struct.Struct("<Q8x6xHH")  # e_phoff, e_phentsize, e_phnum, from byte 32 on
_HEADER = struct.Struct("<IIQQQQQQ")
_LOAD, _NOTE, _GNU_BUILD_ID = 1, 4, 3
_MOST_NOTES = 1 << 16


@dataclass(frozen=True)
class Image:
    """A mapped file: where its first byte is, and where its end."""

    path: str
    file: str  # where it can be read from here
    start: int
    end: int
    build_id: bytes


def _notes(raw: bytes) -> bytes:
    """The build id among them."""
    at = 0
    while at + 12 <= len(raw):
        name, size, kind = struct.unpack_from("<3I", raw, at)
        begins = at + 12 + (name + 3) // 4 * 4
        if kind == _GNU_BUILD_ID and raw[at + 12 : at + 16] == b"GNU\0":
            return raw[begins : begins + size]
        at = begins + (size + 3) // 4 * 4
    return b""


def build_id(memory: Memory, start: int) -> bytes:
    """Of what is mapped there; b"" without one."""
    try:
        if memory.read(start, 4) != b"\x7fELF":
            return b""
        offset, size, count = _PROGRAM_HEADERS.unpack(
            memory.read(start + 32, _PROGRAM_HEADERS.size)
        )
        if size != _HEADER.size:
            return b""
        raw = memory.read(start + offset, size * count)
        headers = list(_HEADER.iter_unpack(raw))
        first = min(h[3] - h[2] for h in headers if h[0] == _LOAD)
        for kind, _, _, address, _, length, _, _ in headers:
            if kind == _NOTE and length <= _MOST_NOTES:
                found = _notes(memory.read(start + address - first, length))
                if found:
                    return found
    except (UnreadableError, ValueError, struct.error):
        pass
    return b""


def _readable(path: str, root: str) -> str:
    """The process may see other files than this one: in a container."""
    theirs = root + path
    return theirs if root and os.access(theirs, os.R_OK) else path


class Images:
    """All of a process, by address."""

    def __init__(self, mappings: list[Mapping], memory: Memory, root: str = "") -> None:
        groups: dict[str, list[Mapping]] = {}
        for m in mappings:
            if m.is_file:
                groups.setdefault(m.path, []).append(m)
        self.images: list[Image] = []
        regions: list[tuple[Region, Image]] = []
        for path, parts in groups.items():
            code = [m for m in parts if "x" in m.permissions]
            # A core file may not say which are code.
            code = code or [m for m in parts if "w" not in m.permissions]
            first = parts[0]
            if not code:
                continue
            start = first.start - first.offset
            image = Image(
                path, _readable(path, root), start, max(m.end for m in parts),
                build_id(memory, start),
            )  # fmt: skip
            self.images.append(image)
            regions += [
                (Region(m.start, m.end, m.offset, path, image.build_id.hex()), image) for m in code
            ]
        self._regions = sorted(regions, key=lambda pair: pair[0].start)
        self._starts = [region.start for region, _ in self._regions]

    @property
    def regions(self) -> list[Region]:
        """By address, so the program's own come first."""
        return [region for region, _ in self._regions]

    def _at(self, address: int) -> tuple[Region | None, Image | None]:
        i = bisect.bisect_right(self._starts, address) - 1
        if i < 0 or address >= self._regions[i][0].limit:
            return None, None
        return self._regions[i]

    def region(self, address: int) -> Region | None:
        """The code that an address lies in."""
        return self._at(address)[0]

    def image(self, address: int) -> Image | None:
        """The file that the code at an address is from."""
        return self._at(address)[1]
