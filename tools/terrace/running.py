# SPDX-License-Identifier: MIT OR Apache-2.0
"""`terrace doctor PID`: whether a process runs on Terrace, and if not, why. Needs Python alone."""

import contextlib
import os
import struct
from dataclasses import dataclass
from pathlib import Path

from terrace.errors import TerraceError
from terrace.report.silence import elf_class, is_static

# src/base/descriptor.h
_MAGIC = b"terrace-debug\0\0\0"
_HEADER = struct.Struct("<16s6I")
_ADDRESS = struct.Struct("<24sQ")
_FIELD = struct.Struct("<28s3I")

_CAN_NOT_TELL = 2


@dataclass(frozen=True)
class Verdict:
    """Of one process; without a reason it runs on Terrace."""

    pid: int
    command: str
    library: str | None = None
    version: str | None = None
    reason: str | None = None

    @property
    def sentence(self) -> str:
        who = f"process {self.pid} ({self.command})"
        if self.reason is None:
            return f"{who} runs on Terrace {self.version}: {self.library}"
        return f"{who} does not run on Terrace: {self.reason}"


def _text(raw: bytes) -> str:
    return raw.partition(b"\0")[0].decode("ascii", "replace")


def _describe(memory: int, at: int) -> tuple[str, int]:
    """Of the heap described there: the library's version, and the bytes cut into blocks."""
    _, _, header, address_bytes, addresses, field_bytes, fields = _HEADER.unpack(
        os.pread(memory, _HEADER.size, at)
    )
    raw = os.pread(memory, address_bytes * addresses, at + header)
    where = {
        _text(name): value
        for name, value in (_ADDRESS.unpack_from(raw, i * address_bytes) for i in range(addresses))
    }
    raw = os.pread(memory, field_bytes * fields, at + header + len(raw))
    offset, size = next(
        (offset, size)
        for name, offset, size, _ in (
            _FIELD.unpack_from(raw, i * field_bytes) for i in range(fields)
        )
        if _text(name) == "slabs.cut_bytes"
    )
    taken = int.from_bytes(os.pread(memory, size, where["heap"] + offset), "little")
    return _text(os.pread(memory, 16, where["version"])), taken


def _heaps(proc: Path) -> list[tuple[str, str, int]]:
    """Object, version and bytes cut of each heap of Terrace in a process."""
    found = []
    memory = os.open(proc / "mem", os.O_RDONLY)
    try:
        for line in (proc / "maps").read_text(errors="replace").splitlines():
            addresses, permissions, _, _, inode, *path = line.split(None, 5)
            if not permissions.startswith("rw") or inode == "0":
                continue
            start, end = (int(address, 16) for address in addresses.split("-"))
            with contextlib.suppress(OSError, OverflowError):
                at = os.pread(memory, end - start, start).find(_MAGIC)
                if at >= 0:
                    found.append((path[0], *_describe(memory, start + at)))
    finally:
        os.close(memory)
    return found


def _why_not_loaded(proc: Path) -> str:
    program = str(proc / "exe")
    if elf_class(program) == 1:
        return "it is a program of 32 bits"
    if is_static(program):
        return "it is linked statically, nothing can be preloaded"
    entries = (proc / "environ").read_bytes().split(b"\0")
    value = next((e for e in entries if e.startswith(b"LD_PRELOAD=")), b"").decode(
        "utf-8", "replace"
    )
    names = [
        n
        for n in value.partition("=")[2].replace(":", " ").split()
        if "terrace" in n or "umem_malloc" in n
    ]
    if not names:
        return "LD_PRELOAD did not name it when the program was started"
    if "/" in names[0] and not os.path.exists(f"{proc}/root{names[0]}"):
        return f"LD_PRELOAD names {names[0]}, and there is no such file"
    return (
        f"LD_PRELOAD names {names[0]}, which the dynamic linker did not load: it is missing, of "
        "another architecture or C library, or the program is set-user-ID"
    )


def judge(pid: int) -> Verdict:
    """Status 2 where it can not be told."""
    proc = Path(f"/proc/{pid}")
    try:
        command = (proc / "comm").read_text(errors="replace").strip()
        heaps = _heaps(proc)
        # libumem.so has a heap of its own, beside whatever malloc there is.
        malloc = [h for h in heaps if not h[0].rpartition("/")[2].startswith("libumem.so")]
        used = [h for h in malloc if h[2] > 0]
        if used:
            path, version, _ = used[0]
            return Verdict(pid, command, path, version)
        if malloc:
            path, version, _ = malloc[0]
            why = f"{path} is loaded, and its malloc is not in use: another one comes first"
            return Verdict(pid, command, path, version, why)
        return Verdict(pid, command, reason=_why_not_loaded(proc))
    except (FileNotFoundError, ProcessLookupError):
        raise TerraceError(f"there is no process {pid}", _CAN_NOT_TELL) from None
    except PermissionError:
        raise TerraceError(
            f"process {pid} may not be looked at: be its user, or root", _CAN_NOT_TELL
        ) from None
