# SPDX-License-Identifier: MIT OR Apache-2.0
"""The file that pprof reads: profile.proto, by protobuf, packed by gzip.

profile.proto is google/pprof's. profile_pb2.py was generated from it by protoc of grpcio-tools
1.62, so that every protobuf from 4.25 on can load it.
"""

import gzip
import zlib
from pathlib import Path
from typing import Any

from google.protobuf.message import DecodeError

from terrace.debug.sampled.frames import Line, Location, Region
from terrace.errors import TerraceError
from terrace.profile.model import Profile, Values
from terrace.profile.profile_pb2 import Profile as Message  # type: ignore[attr-defined]

_LIVE = (("inuse_objects", "count"), ("inuse_space", "bytes"))
_ALLOCATED = (("alloc_objects", "count"), ("alloc_space", "bytes"))
_GZIP = b"\x1f\x8b"


class _Writer:
    """Strings, functions, locations and mappings have numbers, each is written once."""

    def __init__(self, profile: Profile) -> None:
        self.message: Any = Message()
        self._strings: dict[str, int] = {}
        self._functions: dict[tuple[str, str, str], int] = {}
        self._locations: dict[Location, int] = {}
        self.string("")
        self._regions = {region: i for i, region in enumerate(profile.regions, 1)}
        for region, i in self._regions.items():
            self.message.mapping.add(
                id=i, memory_start=region.start, memory_limit=region.limit,
                file_offset=region.offset, filename=self.string(region.path),
                build_id=self.string(region.build_id),
                has_functions=True, has_filenames=True, has_line_numbers=True,
                has_inline_frames=True,
            )  # fmt: skip

    def string(self, text: str) -> int:
        if text not in self._strings:
            self._strings[text] = len(self._strings)
            self.message.string_table.append(text)
        return self._strings[text]

    def function(self, line: Line) -> int:
        key = (line.function, line.linker_name or line.function, line.file)
        if key not in self._functions:
            self._functions[key] = len(self._functions) + 1
            name, system_name, file = map(self.string, key)
            self.message.function.add(
                id=self._functions[key], name=name, system_name=system_name, filename=file
            )
        return self._functions[key]

    def location(self, location: Location) -> int:
        if location not in self._locations:
            self._locations[location] = len(self._locations) + 1
            made = self.message.location.add(id=self._locations[location], address=location.address)
            if location.region is not None:
                made.mapping_id = self._regions[location.region]
            for line in location.lines:
                made.line.add(function_id=self.function(line), line=line.line)
        return self._locations[location]


def encode(profile: Profile) -> bytes:
    """The file's contents."""
    writer = _Writer(profile)
    message = writer.message
    kinds = (*_ALLOCATED, *_LIVE) if profile.has_allocated else _LIVE
    for kind, unit in kinds:
        message.sample_type.add(type=writer.string(kind), unit=writer.string(unit))
    for stack, values in profile.stacks.items():
        numbers = [values.objects, values.bytes]
        if profile.has_allocated:
            numbers = [values.allocated_objects, values.allocated_bytes, *numbers]
        sample = message.sample.add(
            location_id=[writer.location(location) for location in stack],
            value=[round(number) for number in numbers],
        )
        objects, size = profile.shown(values)
        if objects >= 1:
            sample.label.add(key=writer.string("bytes"), num=round(size / objects))
    message.period_type.type, message.period_type.unit = map(writer.string, ("space", "bytes"))
    message.period = profile.period
    message.time_nanos, message.duration_nanos = profile.time, profile.duration
    message.comment.extend(map(writer.string, filter(None, (profile.title, *profile.notes))))
    chosen = _ALLOCATED if profile.show_allocated else _LIVE
    message.default_sample_type = writer.string(chosen[1][0])
    return gzip.compress(message.SerializeToString(), mtime=0)


def decode(raw: bytes, name: str) -> Profile:
    """Of any program's heap profile in this format."""
    message: Any = Message()
    try:
        message.ParseFromString(gzip.decompress(raw) if raw.startswith(_GZIP) else raw)
        return _decoded(message, name)
    except (DecodeError, EOFError, OSError, zlib.error, LookupError):
        raise TerraceError(f"{name} is no profile in pprof's format, or it is damaged") from None


def _decoded(message: Any, name: str) -> Profile:
    text = list(message.string_table)
    kinds = [text[kind.type] for kind in message.sample_type]
    if "inuse_space" not in kinds and "alloc_space" not in kinds:
        raise TerraceError(f"{name} is no heap profile: it has {', '.join(kinds) or 'nothing'}")
    regions = {
        m.id: Region(
            m.memory_start, m.memory_limit, m.file_offset, text[m.filename], text[m.build_id]
        )
        for m in message.mapping
    }
    functions = {
        f.id: (text[f.name], text[f.filename], text[f.system_name]) for f in message.function
    }
    locations = {}
    for each in message.location:
        lines = []
        for line in each.line:
            function, file, linker_name = functions[line.function_id]
            lines.append(Line(function, file, line.line, linker_name))
        found = tuple(lines) or (Line(f"{each.address:#x}"),)
        locations[each.id] = Location(each.address, found, regions.get(each.mapping_id))
    profile = Profile(
        {}, list(regions.values()), message.period, 0, message.time_nanos,
        message.duration_nanos, "alloc_space" in kinds,
        text[message.default_sample_type] == "alloc_space" or "inuse_space" not in kinds,
        title=name,
    )  # fmt: skip
    for sample in message.sample:
        stack = tuple(locations[i] for i in sample.location_id)
        number = dict(zip(kinds, sample.value, strict=False))
        keys = (key for key, _ in (*_LIVE, *_ALLOCATED))
        values = Values(*(number.get(key, 0) for key in keys))
        profile.stacks.setdefault(stack, Values()).add(values)
    return profile


def load(path: str) -> Profile:
    try:
        return decode(Path(path).read_bytes(), path)
    except OSError as error:
        raise TerraceError(f"{path}: {error.strerror}") from None
