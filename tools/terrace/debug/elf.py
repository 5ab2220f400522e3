# SPDX-License-Identifier: MIT OR Apache-2.0
"""Where the descriptor lies in an object file."""

from __future__ import annotations

import contextlib
from typing import BinaryIO

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

from terrace.debug.layout import SECTION


def descriptor_offset(file: BinaryIO) -> int | None:
    """From the address at which the object's first byte is mapped; None: it has none."""
    with contextlib.suppress(ELFError, ValueError):
        elf = ELFFile(file)
        section = elf.get_section_by_name(SECTION)
        if section is None:
            return None
        first = min(
            s["p_vaddr"] - s["p_offset"] for s in elf.iter_segments() if s["p_type"] == "PT_LOAD"
        )
        return int(section["sh_addr"]) - int(first)
    return None
