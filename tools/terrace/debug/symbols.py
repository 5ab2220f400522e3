# SPDX-License-Identifier: MIT OR Apache-2.0
"""Names of addresses in object files, where those have symbols: a class's table, a function."""

import bisect
import contextlib
import shutil
import subprocess
from collections.abc import Iterable
from functools import cache

import numpy as np
from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

from terrace.debug.memory import Mapping

# Of the files of 64-bit machines.
_NAMES, _TYPES = "name info other section at size", "<u4 u1 u1 <u2 <u8 <u8"
_SYMBOL = np.dtype(list(zip(_NAMES.split(), _TYPES.split(), strict=True)))
_NAMED_SECTION = 4  # types of symbols from here on do not stand for data or code


class _Symbols:
    """Of one file, by address; empty without symbols."""

    def __init__(self, path: str) -> None:
        self.table = np.zeros(0, _SYMBOL)
        self.names = b""
        self.first = 0  # the address that the file's first byte is linked for
        with contextlib.suppress(OSError, ELFError, ValueError), open(path, "rb") as file:
            elf = ELFFile(file)
            section = elf.get_section_by_name(".symtab") or elf.get_section_by_name(".dynsym")
            if section is None or elf.elfclass != 64:
                return
            loads = [s for s in elf.iter_segments() if s["p_type"] == "PT_LOAD"]
            self.first = min(s["p_vaddr"] - s["p_offset"] for s in loads)
            self.names = elf.get_section(section["sh_link"]).data()
            table = np.frombuffer(section.data(), _SYMBOL)
            kept = table[(table["size"] != 0) & ((table["info"] & 15) < _NAMED_SECTION)]
            self.table = kept[np.argsort(kept["at"], kind="stable")]

    def name_at(self, offset: int) -> str | None:
        found = self.function_at(offset)
        return None if found is None else found[0]

    def function_at(self, offset: int) -> tuple[str, int] | None:
        """The symbol, and how far from its beginning."""
        address = offset + self.first
        i = int(np.searchsorted(self.table["at"], address, "right")) - 1
        if i < 0 or address >= int(self.table["at"][i]) + int(self.table["size"][i]):
            return None
        start = int(self.table["name"][i])
        name = self.names[start : self.names.index(b"\0", start)].decode(errors="replace")
        return name, address - int(self.table["at"][i])


@cache
def _symbols(path: str) -> _Symbols:
    return _Symbols(path)


@cache
def _demangled(name: str) -> str:
    tool = shutil.which("c++filt")
    if tool is None or not name.startswith("_Z"):
        return name
    done = subprocess.run([tool, name], capture_output=True, text=True, check=False)
    return done.stdout.strip() or name


class Frames:
    """Names of code addresses: object'function+0x10, as libumem's debugger has them."""

    def __init__(self, mappings: list[Mapping]) -> None:
        self._mappings = mappings
        self._starts = [m.start for m in mappings]
        self._bases: dict[str, int] = {}
        for m in mappings:
            self._bases.setdefault(m.path, m.start)

    def name(self, address: int) -> str:
        i = bisect.bisect_right(self._starts, address) - 1
        m = self._mappings[i] if i >= 0 else None
        if m is None or address >= m.end or not m.is_file:
            return f"?? ({address:#x})"
        offset = address - self._bases[m.path]
        file = m.path.rpartition("/")[2]
        found = _symbols(m.path).function_at(offset)
        if found is None:
            return f"{file}'?+{offset:#x}"
        name, within = found
        return f"{file}'{_demangled(name)}+{within:#x}"

    def any_in(self, stack: Iterable[int], function: str) -> bool:
        """Whether a frame is in a function: its name, for C++ with or without its arguments."""
        names = (self.name(address).partition("'")[2].rpartition("+")[0] for address in stack)
        return any(function in (name, name.partition("(")[0]) for name in names)


def name_of(path: str, offset: int) -> str:
    """The symbol at an offset from where the file's beginning is mapped; else file+offset."""
    name = _symbols(path).name_at(offset)
    return _demangled(name) if name else f"{path.rpartition('/')[2]}+{offset:#x}"


def function_in(path: str, offset: int) -> str | None:
    """The symbol at an offset, as the file has it."""
    return _symbols(path).name_at(offset)
