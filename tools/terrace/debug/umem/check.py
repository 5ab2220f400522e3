# SPDX-License-Identifier: MIT OR Apache-2.0
"""umem_verify: what is kept behind objects and in free ones, where UMEM_DEBUG=guards is on."""

from collections.abc import Iterator

import numpy as np

from terrace.debug.umem.caches import Cache, both_halves, tag_offset
from terrace.debug.umem.context import Context, split
from terrace.debug.umem.debugged import Tagged, bytes_of
from terrace.messages import count
from terrace.report.text import table

_MOST = 1000  # lines of one cache


def _free(context: Context, t: Tagged) -> Iterator[tuple[int, str]]:
    """Free objects have one pattern, and so has what is behind them."""
    moment, umem = context.moment, context.umem
    rows = np.flatnonzero(t.is_free)
    if t.cache.debug & umem.constant("debug.deadbeef"):
        size = min(tag_offset(t.cache), t.cache.verify) // 8 * 8
        raw = bytes_of(moment.heap, moment.memory, t.numbers[rows], 0, size)
        words = raw.view("<u8")
        pattern = np.uint64(both_halves(umem.constant("pattern.freed")))
        wrong = words != pattern
        for i in np.flatnonzero(wrong.any(axis=1)).tolist():
            at = int(t.addresses[rows[i]])
            yield (
                at,
                f"buffer {at:x} (free) seems corrupted, at {at + 8 * int(wrong[i].argmax()):x}",
            )
    if t.cache.debug & umem.constant("debug.redzone"):
        redzone = np.uint64(both_halves(umem.constant("pattern.redzone")))
        for at in t.addresses[rows[t.redzone[rows] != redzone]].tolist():
            yield at, f"buffer {at:x} (free) has a corrupt redzone signature"


def _redzones(context: Context, t: Tagged) -> Iterator[tuple[int, str]]:
    umem = context.umem
    rows = np.flatnonzero(t.is_allocated)
    redzone, addresses = t.redzone[rows], t.addresses[rows]
    half = umem.constant("pattern.redzone")
    by_size = t.cache.address in context.default_caches
    if not by_size:
        for at in addresses[redzone != np.uint64(both_halves(half))].tolist():
            yield at, f"buffer {at:x} (allocated) has a corrupt redzone signature"
        return
    factor = umem.constant("size.factor")
    code = (redzone >> np.uint64(32)).astype(np.int64)
    size = code // factor
    sound = (code % factor == 1) & (size <= t.cache.size)
    for at in addresses[~sound].tolist():
        yield at, f"buffer {at:x} (allocated) has a corrupt redzone size encoding"
    # Behind what was asked for comes one byte; where nothing is left of the object, it is the
    # redzone's first.
    low = (redzone & np.uint64(0xFFFFFFFF)).astype(np.int64)
    whole = size == tag_offset(t.cache)
    wanted = np.where(whole, half & ~0xFF | _SIZE_BYTE, half)
    moment = context.moment
    last = bytes_of(moment.heap, moment.memory, t.numbers[rows], 0, tag_offset(t.cache))
    inside = np.where(sound & ~whole, size, 0)
    marked = last[np.arange(len(last)), inside] == _SIZE_BYTE if len(last) else whole
    for at in addresses[sound & ((low != wanted) | ~(marked | whole))].tolist():
        yield at, f"buffer {at:x} (allocated) has a corrupt redzone signature"


_SIZE_BYTE = 0xBB


def faults(context: Context, cache: Cache) -> list[str]:
    """In order of addresses."""
    moment = context.moment
    t = moment.debugged.tagged(cache)
    found: list[tuple[int, str]] = []
    waits = moment.in_magazines[t.numbers]
    wrong = t.is_damaged | (t.is_free & ~waits) | (t.is_allocated & waits)
    for i in np.flatnonzero(wrong).tolist():
        at = int(t.addresses[i])
        state = "free" if waits[i] else "allocated"
        found.append((at, f"buffer {at:x} ({state}) has a corrupt buftag"))
    found += _free(context, t)
    if cache.debug & context.umem.constant("debug.redzone"):
        found += _redzones(context, t)
    return [line for _, line in sorted(found)]


def umem_verify(context: Context, words: list[str]) -> list[str]:
    rest = split(words, "", "", 1, "umem_verify [CACHE]").rest
    debugged = context.moment.debugged
    known = {c.address: c for c in debugged.caches if not debugged.is_walled(c)}
    if rest:
        cache = context.cache(rest[0])
        if cache.address not in known:
            return [f"cache '{cache.name}' has nothing to verify: UMEM_DEBUG=guards is off for it"]
        lines = faults(context, known[cache.address])
        head = f"Summary for cache '{cache.name}'"
        if not lines:
            return [head, "  clean"]
        context.status = 1
        more = [f"  and {len(lines) - _MOST:,} more"] if len(lines) > _MOST else []
        return [head, *(f"  {line}" for line in lines[:_MOST]), *more, *_noted(context)]
    if not known:
        return ["no cache has anything to verify: start the program with UMEM_DEBUG=guards"]
    rows = []
    for cache in known.values():
        number = len({line.split()[1] for line in faults(context, cache)})
        if number:
            context.status = 1
        verdict = count(number, "corrupt buffer") if number else "clean"
        rows.append([cache.name, f"{cache.address:x}", verdict])
    return [
        *table("Cache Name  Addr  Cache Integrity", rows),
        *(_noted(context) if context.status else []),
    ]


def _noted(context: Context) -> list[str]:
    if not context.moment.capture.inside:
        return []
    return ["a thread was within the library: what it was about to do may show as a fault"]
