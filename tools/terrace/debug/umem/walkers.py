# SPDX-License-Identifier: MIT OR Apache-2.0
"""Walkers: iterators over addresses of one kind, by the names that libumem's debugger has.

for address in walk(context, "umem", "my_cache"): ...
"""

from collections.abc import Callable, Iterator

import numpy as np

from terrace.debug.layout import Ints
from terrace.debug.slots import slots, words_of_objects
from terrace.debug.umem.arenas import Arena, ArenaReader, tree
from terrace.debug.umem.caches import Cache
from terrace.debug.umem.context import Context
from terrace.debug.umem.history import entries_of, history, record_at, records_by
from terrace.debug.umem.segments import arena
from terrace.errors import TerraceError

Addresses = Iterator[int]
_PTC = "umem_ptc_"


def _caches(context: Context, word: str | None) -> list[Cache]:
    """Those whose objects are known as theirs, or one that is named; once for each home."""
    found = context.caches if word is None else [context.cache(word)]
    return list(context.moment.debugged.with_homes(found))


def _blocks(context: Context, word: str | None, free: bool) -> Addresses:
    moment = context.moment
    for cache in _caches(context, word):
        numbers = moment.heap.blocks_of(cache.home)
        yield from moment.heap.addresses(numbers[moment.allocated[numbers] != free]).tolist()


def _records(context: Context, word: str | None, *states: str) -> Addresses:
    debugged = context.moment.debugged
    named = {(c.address, c.home) for c in _caches(context, word)}
    for cache in debugged.caches:
        if (cache.address, cache.home) in named:
            t = debugged.tagged(cache)
            chosen = np.zeros(len(t.numbers), np.bool_)
            for state in states:
                chosen |= getattr(t, state)
            yield from t.record[chosen].tolist()


def _slabs(context: Context, word: str | None, partial: bool) -> Addresses:
    moment, heap = context.moment, context.moment.heap
    for cache in _caches(context, word):
        blocks = int(heap.tables[3][cache.home])
        for row in np.flatnonzero(heap.home_of_owner == cache.home).tolist():
            first = int(heap.number[row])
            used = int(moment.debugged.out[first : first + blocks].sum())
            if not partial or 0 < used < blocks:
                yield heap.window.address(int(heap.first[row]))


def _slots(context: Context, _: str | None) -> Addresses:
    yield from (slot.address for slot in slots(context.target.layout, context.memory))


def _words_of_cache(context: Context, word: str | None) -> Addresses:
    """Of each slot, where its words of the cache's chunk are."""
    if word is None:
        raise TerraceError("usage: walk umem_cpu_cache CACHE")
    layout, memory = context.target.layout, context.memory
    objects = context.moment.heap.classes.objects
    home = context.cache(word).home  # of its objects, or of their handles
    for _, first, at, _ in words_of_objects(layout, memory, objects, slots(layout, memory)):
        if 0 <= home - objects.first - first < objects.per_chunk:
            yield at


def _arenas(context: Context, _: str | None) -> Addresses:
    yield from (a.address for _, a in tree(list(ArenaReader(context.umem, context.memory))))


def _arenas_postfix(context: Context, _: str | None) -> Addresses:
    """Each behind those that import from it."""
    waiting: list[tuple[int, Arena]] = []
    for depth, a in [*tree(list(ArenaReader(context.umem, context.memory)))]:
        while waiting and waiting[-1][0] >= depth:
            yield waiting.pop()[1].address
        waiting.append((depth, a))
    yield from (a.address for _, a in reversed(waiting))


def _segments(context: Context, word: str | None, *kinds: str) -> Addresses:
    reader = ArenaReader(context.umem, context.memory)
    for a in [arena(context, word)] if word is not None else list(reader):
        yield from (s.address for s in reader.segments(a) if not kinds or s.kind in kinds)


def _leaked(context: Context, as_records: bool) -> Addresses:
    from terrace.debug.findleaks import find

    found = find(context.target)
    heap, debugged = context.moment.heap, context.moment.debugged
    known = {c.home: c for c in debugged.caches}
    for address in found.addresses:
        number = heap.number_at(address)
        owner = heap.owner(number) if number >= 0 else None
        cache = known.get(owner.size_class) if as_records and owner is not None else None
        record = debugged.reader.of_object(address, cache) if as_records else None
        yield record.address if record is not None else address


def _history(context: Context, word: str | None) -> Addresses:
    if word is None:
        raise TerraceError("usage: walk bufctl_history BUFCTL")
    record = record_at(context, context.evaluate(word))
    yield from (t.address for t in history(context, record))


def _log(context: Context, word: str | None) -> Addresses:
    yield from (e.address for e in entries_of(context, word or "transaction"))


def _by_thread(context: Context, word: str | None, allocated: bool) -> Addresses:
    if word is None or not word.isdecimal():
        raise TerraceError("usage: walk allocdby|freedby THREAD (its number)")
    yield from (r.address for r in records_by(context, int(word), allocated))


Walker = Callable[[Context, "str | None"], Addresses]

WALKERS: dict[str, Walker] = {
    "umem_cache": lambda context, _: iter([c.address for c in context.caches]),
    "umem": lambda context, word: _blocks(context, word, False),
    "freemem": lambda context, word: _blocks(context, word, True),
    "bufctl": lambda context, word: _records(context, word, "is_allocated"),
    "freectl": lambda context, word: _records(context, word, "is_free"),
    "umem_hash": lambda context, word: _records(context, word, "is_allocated", "is_free"),
    "bufctl_history": _history,
    "umem_log": _log,
    "allocdby": lambda context, word: _by_thread(context, word, True),
    "freedby": lambda context, word: _by_thread(context, word, False),
    "umem_cpu": _slots,
    "umem_cpu_cache": _words_of_cache,
    "umem_slab": lambda context, word: _slabs(context, word, False),
    "umem_slab_partial": lambda context, word: _slabs(context, word, True),
    "vmem": _arenas,
    "vmem_postfix": _arenas_postfix,
    "vmem_alloc": lambda context, word: _segments(context, word, "allocated", "cached"),
    "vmem_free": lambda context, word: _segments(context, word, "free"),
    "vmem_seg": _segments,
    "vmem_span": lambda context, word: _segments(context, word, "span"),
    "leak": lambda context, _: _leaked(context, True),
    "leakbuf": lambda context, _: _leaked(context, False),
}


def _kept_by_slots(context: Context, size: int, word: str | None) -> Addresses:
    """Free blocks and objects of that size, of all slots or of one by its number or address."""
    moment = context.moment
    wanted = None
    if word is not None:
        found = slots(context.target.layout, context.memory)
        number = int(word) if word.isdecimal() and int(word) < len(found) else None
        address = context.evaluate(word) if number is None else 0
        wanted = {s.name for i, s in enumerate(found) if number == i or s.address == address}
        if not wanted:
            raise TerraceError(f"{word} is no slot, neither a number nor an address")
    sizes = moment.heap.classes.size_of_home
    numbers: list[Ints] = []
    for m in moment.magazines.in_slots:
        if m.count == 0 or (wanted is not None and not any(m.place.endswith(w) for w in wanted)):
            continue
        found_at = moment.heap.numbers_at(moment.magazines.rounds(m))
        numbers.append(found_at[found_at >= 0])
    if numbers:
        together = np.concatenate(numbers)
        of = sizes[moment.heap.home[moment.heap.span_of_number(together)]] == size
        yield from moment.heap.addresses(together[of]).tolist()


def walk(context: Context, name: str, word: str | None = None) -> Addresses:
    """By the walker's name, or by a cache's, which walks its allocated objects."""
    _ = context.umem  # or there is nothing to walk
    if name in WALKERS:
        return WALKERS[name](context, word)
    size = name.removeprefix(_PTC)
    if name.startswith(_PTC) and size.isdecimal():
        return _kept_by_slots(context, int(size), word)
    if any(c.name == name for c in context.caches):
        return _blocks(context, name, False)
    raise TerraceError(
        f"there is no walker {name}: {', '.join(WALKERS)}, umem_ptc_SIZE, or a cache's name"
    )
