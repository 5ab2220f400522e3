# SPDX-License-Identifier: MIT OR Apache-2.0
"""What lies in blocks of one class: often enough to see what they are."""

import numpy as np

from terrace.debug import checked, damage
from terrace.debug.heap import Heap
from terrace.debug.live import LiveTarget
from terrace.debug.magazines import Magazines, take_out
from terrace.debug.roots import readable_data
from terrace.report.text import table

_MOST, _BYTES = 200, 16


def _text(raw: bytes) -> str:
    return "".join(chr(b) if 32 <= b < 127 else "." for b in raw)


def lines(target: LiveTarget, size_class: int) -> list[str]:
    """Blocks in use, evenly from all of them; the process stands still for a copy."""
    with damage.expected("top"):
        capture = target.capture(readable_data)
        heap = Heap(target.layout, capture.memory, target.umem)
        take_out(heap, Magazines(target.layout, capture.memory, heap.classes))
        checked.apply(heap, capture)
        in_use = np.flatnonzero(heap.allocated)
        found = in_use[heap.classes_of(in_use) == size_class]
        shown = found[:: max(-(-len(found) // _MOST), 1)]
        addresses, sizes = heap.addresses(shown).tolist(), heap.sizes(shown).tolist()
        rows = []
        for address, size in zip(addresses, sizes, strict=True):
            raw = capture.memory.sparse(address, min(size, _BYTES)).tobytes()
            words = " ".join(f"{int.from_bytes(raw[i : i + 8], 'little'):x}" for i in (0, 8))
            rows.append([f"{address:#x}", f"{size:,}", words, _text(raw)])
    return [
        f"{len(rows):,} of {len(found):,} blocks in use",
        "",
        *table("address  >bytes  first two words  as text", rows),
    ]
