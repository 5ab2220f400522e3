# SPDX-License-Identifier: MIT OR Apache-2.0
"""`terrace findleaks`: allocated blocks that the program can not reach any more."""

import time
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from terrace.debug import checked
from terrace.debug.classes import Owner
from terrace.debug.heap import Bools, Heap
from terrace.debug.layout import Ints
from terrace.debug.magazines import Magazines, guarded_in_hands, in_hands, take_out
from terrace.debug.memory import Mapping, Words
from terrace.debug.reach import Graph, Marker, reachable
from terrace.debug.roots import holding, readable_data, roots
from terrace.debug.sampled.leaks import leaked_samples, sampled_lines, table_of
from terrace.debug.sampled.table import Sample
from terrace.debug.symbols import Frames, name_of
from terrace.debug.target import Capture, Target
from terrace.debug.umem.debugged import Debugged
from terrace.debug.umem.leaks import AuditedGroup, audited_groups, audited_lines
from terrace.debug.umem.logs import LogReader
from terrace.debug.umem.malloc_tags import MallocTags
from terrace.messages import count
from terrace.report.cells import human_bytes
from terrace.report.text import table

_SAMPLES = 3  # addresses that are shown of each group
_GROUPS = 40  # that are shown unless all are wanted


@dataclass
class Group:
    """Leaked blocks that look alike."""

    owner: Owner
    begins: str
    blocks: int = 0
    bytes: int = 0
    heads: int = 0  # to which no other leaked block points
    samples: list[int] = field(default_factory=list)


@dataclass
class Findings:
    """What was found, and how long it took."""

    allocated: int
    allocated_bytes: int
    leaked: Ints
    groups: list[Group]
    capture: Capture
    marking: float
    audited: list[AuditedGroup]
    sampled: list[Sample]  # leaked ones
    has_stacks: bool  # of what was allocated, as far as its cache has records
    addresses: list[int]  # of what is leaked

    @property
    def bytes(self) -> int:
        return sum(g.bytes for g in self.groups)


class Describer:
    """Says what the first word of a block is: objects of C++ begin with their class's table."""

    def __init__(self, mappings: list[Mapping]) -> None:
        self._mappings = mappings
        self._starts = np.array([m.start for m in mappings], np.uint64)
        bases: dict[str, int] = {}
        for m in mappings:
            bases.setdefault(m.path, m.start)
        self._bases = bases

    def keys(self, words: Words, is_block: Bools) -> Ints:
        """Equal numbers for words that are described alike."""
        at = np.searchsorted(self._starts, words, "right").astype(np.int64) - 1
        in_file = np.array([m.is_file and "w" not in m.permissions for m in self._mappings])
        ends = np.array([m.end for m in self._mappings], np.uint64)
        good = (at >= 0) & (words < ends[np.maximum(at, 0)]) & in_file[np.maximum(at, 0)]
        keys = np.where(good, words.view(np.int64), np.int64(-1))
        keys = np.where(~good & is_block, np.int64(-2), keys)
        return np.where(words == 0, np.int64(-3), keys)

    def text(self, key: int) -> str:
        if key < 0:
            return {-1: "data", -2: "a pointer to a block", -3: "0"}[key]
        i = int(np.searchsorted(self._starts, np.uint64(key), "right")) - 1
        path = self._mappings[i].path
        return name_of(path, key - self._bases[path])


def first_words(heap: Heap, capture: Capture, numbers: Ints) -> Words:
    """Of each block."""
    result = np.zeros(len(numbers), np.uint64)
    addresses = heap.addresses(numbers)
    order = np.argsort(addresses, kind="stable")
    addresses = addresses[order]
    for start, end in heap.ranges():
        for segment in capture.memory.within(start, end):
            low, high = np.searchsorted(addresses, [segment.start, segment.end - 7])
            offsets = addresses[low:high] - segment.start
            words = segment.data[: len(segment.data) // 8 * 8].view(np.uint64)
            result[order[low:high]] = words[offsets // 8]
    return result


def group(heap: Heap, capture: Capture, leaked: Ints, graph: Graph) -> list[Group]:
    """By owner and first word, the most bytes first."""
    pointed_to = np.zeros(heap.total, np.bool_)
    is_leaked = np.zeros(heap.total, np.bool_)
    is_leaked[leaked] = True
    pointed_to[graph.target[is_leaked[graph.source]]] = True
    words = first_words(heap, capture, leaked)
    describer = Describer(capture.mappings)
    keys = describer.keys(words, heap.numbers_at(words) >= 0)
    classes, sizes, addresses = heap.classes_of(leaked), heap.sizes(leaked), heap.addresses(leaked)
    pairs, which = np.unique(np.stack([classes, keys], axis=1), axis=0, return_inverse=True)
    groups = []
    for i, (size_class, key) in enumerate(pairs.tolist()):
        rows = np.flatnonzero(which.reshape(-1) == i)
        groups.append(
            Group(
                heap.classes.owners[size_class], describer.text(key), len(rows),
                int(sizes[rows].sum()), int((~pointed_to[leaked[rows]]).sum()),
                addresses[rows[:_SAMPLES]].tolist(),
            )
        )  # fmt: skip
    return sorted(groups, key=lambda g: -g.bytes)


def show_as_returned(target: Target, heap: Heap, capture: Capture, groups: list[Group]) -> None:
    """Samples of malloc's blocks are what malloc returned: the program knows no other address."""
    if target.umem is None:
        return
    tags = MallocTags(target.umem, capture.memory, heap)
    for g in groups:
        numbers = heap.numbers_at(np.array(g.samples, np.uint64)).tolist()
        pairs = zip(g.samples, numbers, strict=True)
        g.samples = [tags.returned(number) or address for address, number in pairs]


def find(target: Target) -> Findings:
    layout = target.layout
    capture = target.capture(readable_data, registers=True)
    began = time.monotonic()
    heap = Heap(layout, capture.memory, target.umem)
    magazines = Magazines(layout, capture.memory, heap.classes)
    debugged = None
    if target.umem is not None:
        heap.add_apart(target.umem)
        debugged = Debugged(heap, target.umem, capture.memory)
    moving = in_hands(heap, magazines)
    take_out(heap, magazines)
    if debugged is not None:
        heap.allocated[debugged.record_numbers()] = False
    apart: list[tuple[int, int]] = []
    if layout.constant("magazine.guarded"):
        apart += holding(capture.mappings, (m.address for m in magazines))
        moving = guarded_in_hands(layout, magazines, apart)
    apart += checked.apply(heap, capture)
    samples = table_of(layout, capture.memory)
    if samples is not None:
        apart += samples.memory_of_its_own()
    if target.umem is not None:
        apart += LogReader(target.umem, capture.memory).ranges()
        apart += heap.apart.own + heap.ranges()[1:]
    marker = Marker(heap)
    registers: Iterable[Words] = [*(t.words for t in capture.threads), moving]
    ranges = roots(layout, capture, apart) + heap.unknown_ranges()
    first = marker.roots(capture.memory, ranges, registers)
    graph = marker.graph(capture.memory)
    reached = reachable(heap, graph, first) | heap.losing_pages()
    leaked = np.flatnonzero(heap.allocated & ~reached)
    everything = np.flatnonzero(heap.allocated)
    sizes = int(heap.sizes(everything).sum())
    groups = group(heap, capture, leaked, graph)
    show_as_returned(target, heap, capture, groups)
    audited = audited_groups(heap, debugged, leaked) if debugged is not None else []
    has_stacks = debugged is not None and any(map(debugged.has_audit, debugged.caches))
    marked = time.monotonic() - began
    addresses: list[int] = heap.addresses(leaked).tolist()
    return Findings(
        len(everything), sizes, leaked, groups, capture, marked, audited,
        leaked_samples(heap, samples, leaked), has_stacks, addresses,
    )  # fmt: skip


def _statistics(f: Findings) -> str:
    c = f.capture
    parts = [f"looked at {count(f.allocated, 'block')} ({human_bytes(f.allocated_bytes)})"]
    if c.pause is None:
        parts.append("nothing was stopped")
    else:
        per_gib = c.pause * 1000 / max(c.copied / (1 << 30), 1e-9)
        parts.append(
            f"the process stood still for {c.pause * 1000:.1f} ms to copy {human_bytes(c.copied)}"
            + (f" ({per_gib:.0f} ms per GiB)" if c.copied > 64 << 20 else "")
        )
    parts.append(f"marked in {f.marking:.2f} s")
    return "; ".join(parts)


def lines_through(target: Target, f: Findings, function: str, everything: bool) -> list[str]:
    """The report on what was allocated by stacks that the function is in."""
    if not f.has_stacks:
        return [f"{target.title}: no stacks are known: that takes libumem and UMEM_DEBUG=audit"]
    frames = Frames(f.capture.mappings)
    groups = [g for g in f.audited if frames.any_in(g.oldest.stack, function)]
    if not groups:
        return [f"{target.title}: no leaks with a known stack through {function}"]
    shown = None if everything else _GROUPS
    return [*audited_lines(groups, frames, shown), "", _statistics(f)]


def lines(target: Target, findings: Findings, everything: bool = False) -> list[str]:
    """The report."""
    shown = findings.groups if everything else findings.groups[:_GROUPS]
    result = []
    if shown:
        has_caches = any(g.owner.cache for g in shown)
        first = "size or cache" if has_caches else "size"
        head = f"{first}  >blocks  >bytes  >heads  begins with  addresses"
        rows = [
            [
                g.owner.name, f"{g.blocks:,}", f"{g.bytes:,}", f"{g.heads:,}", g.begins,
                " ".join(f"{a:#x}" for a in g.samples),
            ]
            for g in shown
        ]  # fmt: skip
        result += table(head, rows)
    if len(findings.groups) > len(shown):
        result.append(f"and {count(len(findings.groups) - len(shown), 'more group')}: --all")
    if findings.audited:
        frames = Frames(findings.capture.mappings)
        result += [
            "",
            *audited_lines(findings.audited, frames, None if everything else _GROUPS),
            "",
        ]
    if findings.sampled:
        result += sampled_lines(target, findings.sampled, None if everything else _GROUPS)
    found = len(findings.leaked)
    if found:
        result.append(f"{target.title}: {count(found, 'block')} leaked, {findings.bytes:,} bytes")
    else:
        result.append(f"{target.title}: no leaks")
    result.append(_statistics(findings))
    if findings.capture.inside and found:
        threads = count(findings.capture.inside, "thread was", "threads were")
        result.append(
            f"{threads} within Terrace: blocks on their way between levels may show as leaked"
        )
    return result
