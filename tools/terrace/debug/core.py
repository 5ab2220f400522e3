# SPDX-License-Identifier: MIT OR Apache-2.0
"""A core file of the kernel or of gdb's gcore. What it lacks is read from the mapped files."""

import contextlib
import mmap
import platform
import struct
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

from terrace.debug import damage
from terrace.debug.memory import Bytes, Copy, Mapping, Memory, Segment, Thread, UnreadableError
from terrace.debug.ptrace import thread_of
from terrace.debug.sampled import perf_map
from terrace.debug.target import (
    OF_32_BITS,
    Capture,
    Described,
    Select,
    Target,
    described,
    is_of_32_bits,
)
from terrace.errors import TerraceError

_PRSTATUS, _FPREGS, _PRPSINFO, _X86_XSTATE, _ARM_TLS = 1, 2, 3, 0x202, 0x401
_FILE = 0x46494C45
_PROFILE = 0x5450524F  # our own: src/introspect/profile_file.cpp
_AUXV = 6  # the auxiliary vector, which has
_PHDR, _EXECFN = 3, 31  # the program's headers, and its name, which lies on the main stack
_PID = 24  # in NT_PRPSINFO on machines of 64 bits
_TID = 32  # in NT_PRSTATUS on machines of 64 bits; the general registers follow at
_GENERAL = 112
_GENERAL_END = -8  # and one number comes after them
_MACHINES = {"x86_64": 62, "aarch64": 183}  # e_machine
_PACKED = {
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\x04\x22\x4d\x18": "lz4",
    b"\xfd7zXZ": "xz",
    b"\x1f\x8b": "gzip",
}
_EXECUTABLE, _WRITABLE, _READABLE = 1, 2, 4


class _Files(Memory):
    """What was mapped from files and is in no segment of the core: code and constants."""

    def __init__(self, mappings: list[Mapping]) -> None:
        self._mappings = [m for m in mappings if m.is_file]
        self._open: dict[str, BinaryIO | None] = {}

    def file(self, path: str) -> BinaryIO | None:
        if path not in self._open:
            self._open[path] = None
            with contextlib.suppress(OSError):
                self._open[path] = open(path, "rb")  # noqa: SIM115 (as long as the target)
        return self._open[path]

    def read(self, address: int, size: int) -> bytes:
        for m in self._mappings:
            if m.start <= address and address + size <= m.end:
                file = self.file(m.path)
                if file is None:
                    raise TerraceError(
                        f"the core file has no copy of {m.path}, and that is not there any more: "
                        "put the file there that the process had"
                    )
                try:
                    file.seek(m.offset + address - m.start)
                    data = file.read(size)
                except OSError:
                    raise UnreadableError(address) from None
                return data + bytes(size - len(data))
        raise UnreadableError(address)


def _without_sections(beginning: Iterable[int]) -> bytes:
    """Of a file of 64 bits: a file that was stripped has other sections, and the same memory."""
    raw = bytearray(beginning)
    for start, end in ((40, 48), (58, 64)):  # e_shoff; e_shentsize, e_shnum, e_shstrndx
        raw[start:end] = bytes(end - start)
    return bytes(raw)


def _expect_readable(path: Path, file: BinaryIO) -> None:
    """Core files that can not be read for a reason that is known."""
    beginning = file.read(20)
    for magic, tool in _PACKED.items():
        if beginning.startswith(magic):
            raise TerraceError(f"{path} is compressed: unpack it first, by `{tool} -d`")
    if is_of_32_bits(beginning):
        raise TerraceError(f"{path} {OF_32_BITS}")
    machine, here = int.from_bytes(beginning[18:20], "little"), platform.machine()
    if beginning[:4] == b"\x7fELF" and machine != _MACHINES.get(here):
        raise TerraceError(f"{path} is of a program for another machine than this ({here})")


def _notes(elf: Any) -> list[tuple[int, bytes]]:
    """Type and contents of each; pyelftools does not know all of them."""
    found = []
    for segment in elf.iter_segments():
        if segment["p_type"] != "PT_NOTE":
            continue
        data, at = segment.data(), 0
        while at + 12 <= len(data):
            name, size, kind = struct.unpack_from("<3I", data, at)
            at += 12 + (name + 3) // 4 * 4
            found.append((kind, data[at : at + size]))
            at += (size + 3) // 4 * 4
    return found


def _mapped_files(note: bytes) -> list[Mapping]:
    """Of NT_FILE: numbers first, then as many names."""
    count, page = struct.unpack_from("<2Q", note)
    numbers = struct.iter_unpack("<3Q", note[16 : 16 + 24 * count])
    names = note[16 + 24 * count :].split(b"\0")
    return [
        Mapping(start, end, "r--p", offset * page, names[i].decode(errors="replace"))
        for i, (start, end, offset) in enumerate(numbers)
    ]


def _threads(notes: list[tuple[int, bytes]]) -> list[Thread]:
    """A thread's general registers begin it; the others follow."""
    threads: list[tuple[int, bytes, bytes]] = []
    for kind, data in notes:
        if kind == _PRSTATUS:
            tid = int.from_bytes(data[_TID : _TID + 4], "little")
            threads.append((tid, data[_GENERAL:_GENERAL_END], b""))
        elif kind in (_FPREGS, _X86_XSTATE) and threads:
            threads[-1] = (*threads[-1][:2], threads[-1][2] + data)
        elif kind == _ARM_TLS and threads:
            tid, general, others = threads[-1]
            threads[-1] = (tid, general + data, others)
    return [thread_of(*thread) for thread in threads]


class CoreTarget(Target):
    """By its path."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.title = f"core file {path}"
        try:
            with path.open("rb") as file:
                _expect_readable(path, file)
                self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
                elf = ELFFile(file)
                if elf["e_type"] != "ET_CORE":
                    raise TerraceError(f"{path} is a program or an object, not a core file")
                segments = [dict(s.header) for s in elf.iter_segments()]
                self._loads = [s for s in segments if s["p_type"] == "PT_LOAD"]
                self._note = _notes(elf)
                self._files = [
                    mapping
                    for kind, data in self._note
                    if kind == _FILE
                    for mapping in _mapped_files(data)
                ]
        except OSError as error:
            raise TerraceError(f"{path}: {error.strerror}") from None
        except (AttributeError, ELFError, *damage.NONSENSE):
            raise TerraceError(f"{path} is no core file, or its beginning is damaged") from None
        self.is_profile = any(kind == _PROFILE for kind, _ in self._note)
        if self.is_profile:
            self.title = f"profile {path}"
        self._check_length(path)
        whole: Bytes = np.frombuffer(self._map, np.uint8)
        dumped = [
            Segment(s["p_vaddr"], whole[s["p_offset"] : s["p_offset"] + s["p_filesz"]])
            for s in self._loads
            if s["p_filesz"] != 0
        ]
        self._mappings = self._all_mappings()
        self.files = _Files(self._mappings)
        self.memory: Copy = Copy(dumped, self.files)

    def _check_length(self, path: Path) -> None:
        needed = max((s["p_offset"] + s["p_filesz"] for s in self._loads), default=0)
        if not self._loads or not self._note:
            raise TerraceError(f"{path} is damaged: it has no memory or no threads in it")
        if needed > len(self._map):
            raise TerraceError(
                f"{path} is cut short: it has {len(self._map):,} of {needed:,} bytes "
                "(a limit, `ulimit -c`, or a full disk?)"
            )

    def _all_mappings(self) -> list[Mapping]:
        files = {m.start: m for m in self._files}
        found = []
        for s in self._loads:
            flags = s["p_flags"]
            permissions = "".join(
                letter if flags & bit else "-"
                for letter, bit in (("r", _READABLE), ("w", _WRITABLE), ("x", _EXECUTABLE))
            )
            start, end = s["p_vaddr"], s["p_vaddr"] + s["p_memsz"]
            file = files.pop(start, None)
            offset, path = (file.offset, file.path) if file else (0, "")
            found.append(Mapping(start, end, permissions + "p", offset, path))
        on_stack = self._auxiliary(_EXECFN)
        found = [
            replace(m, path="[stack]") if not m.path and m.start <= on_stack < m.end else m
            for m in found
        ]
        return sorted([*found, *files.values()], key=lambda m: m.start)

    def _auxiliary(self, key: int) -> int:
        for kind, data in self._note:
            if kind == _AUXV:
                pairs = dict(struct.iter_unpack("<2Q", data[: len(data) // 16 * 16]))
                return int(pairs.get(key, 0))
        return 0

    def mappings(self) -> list[Mapping]:
        return self._mappings

    def why_none(self) -> str:
        if not any(s["p_filesz"] for s in self._loads if s["p_flags"] & _WRITABLE):
            return "has no copy of the program's data: see /proc/PID/coredump_filter in core(5)"
        return super().why_none()

    def perf_map(self) -> perf_map.PerfMap:
        return perf_map.of_core(self._path, self._pid())

    def _pid(self) -> int:
        """As the process saw it; 0: it is not said."""
        data = next((data for kind, data in self._note if kind == _PRPSINFO), b"")
        return int.from_bytes(data[_PID : _PID + 4], "little")

    def descriptors(self) -> list[Described]:
        found = list(described(self.memory, self._mappings))
        for each in found:
            self._expect_same(each.mapping)
        return found

    def _expect_same(self, mapping: Mapping) -> None:
        """Else its constants are those of another build."""
        begun = self.memory.within(mapping.start, mapping.start + 4096)
        file = self.files.file(mapping.path)
        if not begun or file is None:
            return
        file.seek(0)
        if _without_sections(file.read(len(begun[0].data))) != _without_sections(begun[0].data):
            raise TerraceError(
                f"{mapping.path} is not what it was when {self.title} was written: put the file "
                "there that the process had"
            )

    def capture(self, select: Select, registers: bool = True) -> Capture:  # noqa: ARG002
        """All of it is there already."""
        threads = _threads(self._note)
        inside = self.inside(self._mappings, threads, self._program())
        return Capture(self.memory, self._mappings, threads, inside=len(inside))

    def _program(self) -> str:
        headers = self._auxiliary(_PHDR)
        return next((m.path for m in self._mappings if m.start <= headers < m.end), "")
