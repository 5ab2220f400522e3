# SPDX-License-Identifier: MIT OR Apache-2.0
"""Does a program really run on an allocator, and what does the allocator say of itself? Asked of a running program (probe.c)."""

import json
import re
import struct
from dataclasses import dataclass
from pathlib import Path

from interleave import Subject
from workload import Failed, launched

FOREIGN = 64 << 10  # of the probe's million bytes, what may lie in libc's own heap when another allocator serves


@dataclass(frozen=True)
class Words:
    """What the probe says."""

    functions: dict[str, str | None]  # the object that each comes from
    usable: dict[str, int]
    libc: str
    gained_by_libc: int
    version: str | None = None
    mode: str | None = None


def ask(build: Path, subject: Subject) -> Words:
    """Raises Failed if the probe does not end well."""
    run = launched(build, subject, [str(build / "bench" / "peers" / "bench_probe")], timeout=60)
    try:
        return Words(**json.loads(run.output.splitlines()[-1]))
    except (IndexError, ValueError, TypeError) as error:
        raise Failed(f"the probe said nonsense: {run.output.strip()[-200:]} {run.errors.strip()[-200:]}") from error


def complaints(words: Words, library: Path | None) -> list[str]:
    """Why `library` does not serve the whole family of malloc; without a library, why libc does not."""
    found = []
    for function, owner in words.functions.items():
        if owner is None:
            if not function.startswith("_Z"):  # operators come with C++ programs
                found.append(f"there is no {function}")
        elif library is None:
            if not Path(owner).name.startswith("libc."):
                found.append(f"{function} is that of {owner}")
        elif Path(owner).resolve() != library.resolve():
            found.append(f"{function} is that of {owner}")
    for request, usable in words.usable.items():
        if usable < int(request):
            found.append(f"of {request} bytes {usable} are usable")
    if library is not None and words.gained_by_libc > FOREIGN:
        found.append(f"libc's heap grew by {words.gained_by_libc} bytes, so it served")
    if library is None and words.gained_by_libc <= FOREIGN:
        found.append("libc's heap did not grow, so the probe proves nothing")
    return found


def readable_version(text: str) -> str:
    """'30302' (mimalloc's) -> '3.3.2', '5.3.1-0-g81034ce1f...' -> '5.3.1-0-g81034ce', 'gperftools 2.10' -> '2.10'."""
    if re.fullmatch(r"\d{5}", text):
        return f"{int(text[0])}.{int(text[1:3])}.{int(text[3:])}"
    return re.sub(r"(-g[0-9a-f]{7})[0-9a-f]+", r"\1", text).removeprefix("gperftools ")


def object_compiler(content: bytes) -> str:
    """As compilers note it in what they make. The start-up code in every object is gcc's, so clang counts first."""
    for name, before in (("clang", rb"clang version"), ("gcc", rb"(?:GCC: \([^)]*\)|GNU CC version)")):
        if found := re.search(before + rb" (\d+(?:\.\d+)*)", content):
            return f"{name} {found[1].decode()}"
    return "-"


def loaded_bytes(content: bytes) -> int:
    """What of an object comes into memory from its file, without symbols and debugging information."""
    if content[:5] != b"\x7fELF\x02":
        raise ValueError("not an ELF object of 64 bits")
    (table,) = struct.unpack_from("<Q", content, 32)
    size, count = struct.unpack_from("<HH", content, 54)
    entries = (struct.unpack_from("<IIQQQQ", content, table + i * size) for i in range(count))
    return sum(file_size for kind, _flags, _offset, _address, _physical, file_size in entries if kind == 1)
