# SPDX-License-Identifier: MIT OR Apache-2.0
"""Which blocks can be reached: any word that points to a block, or into one, keeps it.

All words of all blocks are looked at once, side by side; the pointers found make a graph, and what
can be reached in it from the roots is found by scipy's compiled search, however long its lists are.
"""

import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import breadth_first_order

from terrace.debug.heap import Bools, Heap
from terrace.debug.layout import Ints
from terrace.debug.memory import Copy, Segment, Words
from terrace.debug.target import Range

_PIECE = 1 << 20  # bytes: what is worked on fits into a cache
_GROUP = 16  # pieces in one task


@dataclass
class Graph:
    """Pointers between allocated blocks. `source` rises."""

    source: Ints
    target: Ints


def _words(segment: Segment) -> tuple[int, Words]:
    """Whole, aligned words and where they begin."""
    skip = -segment.start % 8
    data = segment.data[skip:]
    return segment.start + skip, data[: len(data) // 8 * 8].view(np.uint64)


def _pieces(memory: Copy, ranges: Iterable[Range]) -> Iterator[list[tuple[int, Words]]]:
    group = []
    for start, end in ranges:
        for segment in memory.within(start, end):
            at, words = _words(segment)
            step = _PIECE // 8
            for i in range(0, len(words), step):
                group.append((at + 8 * i, words[i : i + step]))
                if len(group) == _GROUP:
                    yield group
                    group = []
    if group:
        yield group


class Marker:
    """Finds pointers to allocated blocks."""

    def __init__(self, heap: Heap) -> None:
        self._heap = heap
        self._pool = ThreadPoolExecutor(min(4, os.cpu_count() or 1))

    def targets(self, words: Words) -> tuple[npt.NDArray[np.intp], Ints]:
        """Which of the words point to allocated blocks, and to which."""
        at = np.flatnonzero(self._heap.is_near(words))
        numbers = self._heap.numbers_at(words[at])
        good = numbers >= 0
        good[good] = self._heap.allocated[numbers[good]]
        return at[good], numbers[good]

    def roots(self, memory: Copy, ranges: list[Range], registers: Iterable[Words]) -> Ints:
        """The blocks that roots point to."""
        found = np.zeros(self._heap.total, np.bool_)

        def look(group: list[tuple[int, Words]]) -> None:
            for _, words in group:
                found[self.targets(words)[1]] = True

        groups = [[(0, words) for words in registers], *_pieces(memory, ranges)]
        for _ in self._pool.map(look, groups):
            pass
        return np.flatnonzero(found)

    def _between(self, group: list[tuple[int, Words]]) -> Graph:
        sources, targets = [], []
        for address, words in group:
            at, target = self.targets(words)
            source = self._heap.numbers_at(np.uint64(address) + at.astype(np.uint64) * np.uint64(8))
            good = (source >= 0) & (source != target)
            good[good] = self._heap.allocated[source[good]]
            sources.append(source[good].astype(np.int32))
            targets.append(target[good].astype(np.int32))
        return Graph(np.concatenate(sources), np.concatenate(targets))

    def graph(self, memory: Copy) -> Graph:
        found = list(self._pool.map(self._between, _pieces(memory, self._heap.ranges())))
        nothing = np.zeros(0, np.int32)
        return Graph(
            np.concatenate([nothing, *(g.source for g in found)]),
            np.concatenate([nothing, *(g.target for g in found)]),
        )


def reachable(heap: Heap, graph: Graph, roots: Ints) -> Bools:
    """Of each block of the heap, whether a path leads there from a root."""
    dense = np.cumsum(heap.allocated, dtype=np.int32) - 1  # numbers without the free blocks
    count = int(dense[-1]) + 1 if heap.total else 0
    # One more node stands for all roots. Sources rise already, so rows need no sorting.
    rows = np.bincount(dense[graph.source], minlength=count)
    edges = len(graph.target) + len(roots)
    index = np.int32 if edges < 2**31 else np.int64  # the search is faster with the former
    starts = np.zeros(count + 2, index)
    np.cumsum(np.append(rows, len(roots)), out=starts[1:])
    targets = np.concatenate([dense[graph.target], dense[roots]])
    weights = np.broadcast_to(1.0, edges)  # nobody looks at them, and they take no memory
    matrix = csr_matrix((weights, targets, starts), shape=(count + 1, count + 1), copy=False)
    order = breadth_first_order(matrix, count, directed=True, return_predecessors=False)
    reached = np.zeros(count + 1, np.bool_)
    reached[order] = True
    result = np.zeros(heap.total, np.bool_)
    result[heap.allocated] = reached[:count]
    return result
