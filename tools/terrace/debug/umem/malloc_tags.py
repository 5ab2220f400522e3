# SPDX-License-Identifier: MIT OR Apache-2.0
"""Where malloc's blocks begin in objects: behind its tags, under UMEM_DEBUG."""

from terrace.debug.heap import Heap
from terrace.debug.layout import UmemLayout
from terrace.debug.memory import Memory
from terrace.debug.umem.caches import CacheReader


class MallocTags:
    """Reads the tags of blocks."""

    def __init__(self, umem: UmemLayout, memory: Memory, heap: Heap) -> None:
        self._umem, self._memory, self._heap = umem, memory, heap
        self._by_size = CacheReader(umem, memory).default_caches()
        kinds = ("long", "huge", "aligned")
        self._magic = [umem.constant(f"malloc_magic.{kind}") for kind in kinds]

    def returned(self, number: int) -> int | None:
        """What malloc has returned of the block of that number. None: it is not malloc's, or
        aligned to more than 16 bytes, where the tag may lie further inside."""
        umem, heap = self._umem, self._heap
        if not self._by_size or heap.owner(number).cache not in self._by_size | {0}:
            return None
        start = heap.address(number)
        size = umem.field("malloc_tag").size  # of two, the second one says what the block is
        tag = umem.decode("malloc_tag", self._memory.sparse(start + size, size).tobytes())
        magic = (tag["size"] + tag["stat"]) & 0xFFFFFFFF
        return start + 2 * size if magic in self._magic else None
