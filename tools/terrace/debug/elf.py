# SPDX-License-Identifier: MIT OR Apache-2.0
"""Where the descriptors lie in an object file."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import BinaryIO

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

from terrace.debug.layout import SECTION, UMEM_SECTION


@dataclass(frozen=True)
class Offsets:
    """From the address at which the object's first byte is mapped. Not all objects have umem."""

    heap: int
    umem: int | None


def descriptor_offsets(file: BinaryIO) -> Offsets | None:
    """None: it has no descriptor."""
    with contextlib.suppress(ELFError, ValueError):
        elf = ELFFile(file)
        section = elf.get_section_by_name(SECTION)
        if section is None:
            return None
        first = min(
            s["p_vaddr"] - s["p_offset"] for s in elf.iter_segments() if s["p_type"] == "PT_LOAD"
        )
        umem = elf.get_section_by_name(UMEM_SECTION)
        return Offsets(
            int(section["sh_addr"]) - int(first),
            None if umem is None else int(umem["sh_addr"]) - int(first),
        )
    return None
