# SPDX-License-Identifier: MIT OR Apache-2.0
"""umausers: who has allocated what is in use, where caches have audit records."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from terrace.debug.layout import Ints
from terrace.debug.umem.caches import Cache
from terrace.debug.umem.context import Context, split
from terrace.debug.umem.debugged import Tagged
from terrace.debug.umem.records import Record
from terrace.errors import TerraceError

_FEW_BYTES, _FEW = 8192, 100  # of less than both a group is not shown


@dataclass
class User:
    """Objects of one length, allocated by one stack."""

    size: int
    stack: tuple[int, ...]
    buffers: int = 0
    records: list[tuple[str, Record]] = field(default_factory=list)  # for -f


def _sizes(context: Context, t: Tagged, rows: Ints) -> Ints:
    """What was asked for, where the redzone says it; else what the cache was created with."""
    if context.moment.debugged.is_walled(t.cache):
        return context.moment.heap.sizes(t.numbers[rows])
    if t.cache.address not in context.default_caches:
        return np.full(len(rows), t.cache.size)
    factor = context.umem.constant("size.factor")
    size = (t.redzone[rows] >> np.uint64(32)).astype(np.int64) // factor
    return np.where(size <= t.cache.size, size, t.cache.size)


def _of_cache(context: Context, cache: Cache, each: bool) -> Iterator[User]:
    debugged = context.moment.debugged
    t = debugged.tagged(cache)
    rows = np.flatnonzero(t.is_allocated & ~context.moment.in_magazines[t.numbers])
    records = debugged.records(t, rows)
    keys = np.concatenate([_sizes(context, t, rows)[:, None].astype(np.uint64), records.stack], 1)
    _, first, which = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    counts = np.bincount(which.reshape(-1), minlength=len(first))
    for i, row in enumerate(first.tolist()):
        user = User(int(keys[row, 0]), records.at(row).stack, int(counts[i]))
        if each:
            of_user = np.flatnonzero(which.reshape(-1) == i).tolist()
            user.records = [(cache.name, records.at(r)) for r in of_user]
        yield user


def umausers(context: Context, words: list[str]) -> list[str]:
    options = split(words, "ef", "", 1000, "umausers [-e] [-f] [CACHE...]")
    debugged = context.moment.debugged
    named = [context.cache(word) for word in options.rest]
    wanted = list(debugged.with_homes(named)) if named else debugged.caches
    audited = [c for c in wanted if debugged.has_audit(c)]
    if not audited:
        raise TerraceError(
            "umausers: no cache knows who allocated its objects: start the program with "
            "UMEM_DEBUG=audit"
        )
    each = "f" in options.flags
    users: dict[tuple[int, tuple[int, ...]], User] = {}
    for cache in audited:
        for found in _of_cache(context, cache, each):
            user = users.setdefault((found.size, found.stack), User(found.size, found.stack))
            user.buffers += found.buffers
            user.records += found.records
    lines: list[str] = []
    for user in sorted(users.values(), key=lambda u: -u.buffers * u.size):
        total = user.buffers * user.size
        if "e" not in options.flags and total < _FEW_BYTES and user.buffers < _FEW:
            continue
        lines.append(f"{total} bytes for {user.buffers} allocations with data size {user.size}:")
        lines += [f"    {context.frames.name(address)}" for address in user.stack]
        lines += [
            f"        size {user.size}, addr {r.object:x}, thread {r.thread}, cache {name}"
            for name, r in user.records
        ]
    return lines or ["no user has 8 KiB or 100 allocations: umausers -e shows all"]
