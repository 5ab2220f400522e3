# SPDX-License-Identifier: MIT OR Apache-2.0
"""bufctl, allocdby, freedby, umalog and umem_log: what happened to objects."""

from collections.abc import Iterator

import numpy as np

from terrace.debug.memory import UnreadableError
from terrace.debug.symbols import Frames
from terrace.debug.umem.context import Context, split
from terrace.debug.umem.logs import NAMES, Entry, LogReader, Transaction
from terrace.debug.umem.records import Record, when
from terrace.errors import TerraceError
from terrace.report.text import table

_MOST_HISTORY = 10_000
_HEAD = "ADDR  BUFADDR  TIMESTAMP  THRD  CALLER"
_USAGE = "bufctl ADDR [-v|-h] [-a BUFFER] [-c CALLER] [-e EARLIEST] [-l LATEST] [-t THREAD]"


def record_at(context: Context, address: int) -> Record:
    """A record, or that of the object which lies there."""
    moment = context.moment
    reader = moment.debugged.reader
    record = reader.at(address)
    if record is not None and record.is_of(moment.heap, reader):
        return record
    number = moment.heap.number_at(address)
    owner = moment.heap.owner(number) if number >= 0 else None
    if owner is not None:
        cache = reader.caches.at(owner.cache) if owner.cache else None
        record = reader.of_object(moment.heap.address(number), cache)
        if record is not None:
            return record
    raise TerraceError(
        f"{address:#x} is neither a bufctl nor an object that has one: only caches under "
        "UMEM_DEBUG have them"
    )


def transaction(context: Context, record: Record) -> Transaction:
    try:
        last = context.umem.value(context.memory, record.address, "record.last_log")
    except UnreadableError:
        last = 0
    return Transaction(**vars(record), last=last)


def history(context: Context, record: Record) -> Iterator[Transaction]:
    """The newest first, as far back as the log has it."""
    now = transaction(context, record)
    yield now
    reader = LogReader(context.umem, context.memory)
    entries = {e.address: e for e in reader.entries("transaction")}
    # The record's own transaction is the log's newest entry of it.
    address, latest = now.last, now.nanoseconds
    for _ in range(_MOST_HISTORY):
        entry = entries.get(address)
        if entry is None or (entry.object, entry.cache) != (now.object, now.cache):
            return
        if entry.nanoseconds > latest or entry.address == entry.last:
            return
        if entry.nanoseconds < latest:
            yield entry
        address, latest = entry.last, entry.nanoseconds


def _caller(frames: Frames, stack: tuple[int, ...]) -> str:
    return frames.name(stack[0]) if stack else "-"


def _row(context: Context, t: Transaction, verbose: bool) -> list[str]:
    cells = [
        f"{t.address:x}", f"{t.object:x}", when(t.nanoseconds), str(t.thread),
        _caller(context.frames, t.stack),
    ]  # fmt: skip
    return [*cells, f"{t.cache:x}", f"{t.last:x}", f"{t.contents:x}"] if verbose else cells


def _fits(context: Context, t: Transaction, values: dict[str, str]) -> bool:
    def number(letter: str) -> int:
        return context.evaluate(values[letter])

    if "a" in values and number("a") != t.object:
        return False
    if "t" in values and int(values["t"]) != t.thread:
        return False
    if "e" in values and t.nanoseconds < float(values["e"]) * 1e9:
        return False
    if "l" in values and t.nanoseconds > float(values["l"]) * 1e9:
        return False
    if "c" in values:
        wanted = values["c"].rpartition("'")[2]
        names = [context.frames.name(a) for a in t.stack]
        return any(n.rpartition("'")[2].partition("+")[0] == wanted for n in names)
    return True


def bufctl(context: Context, words: list[str]) -> list[str]:
    options = split(words, "vh", "acelt", 1, _USAGE)
    if not options.rest:
        raise TerraceError(f"usage: {_USAGE}", 2)
    record = record_at(context, context.evaluate(options.rest[0]))
    found = history(context, record) if "h" in options.flags else [transaction(context, record)]
    try:
        shown = [t for t in found if _fits(context, t, options.values)]
    except ValueError:
        raise TerraceError(f"usage: {_USAGE}", 2) from None
    verbose = "v" in options.flags
    if not verbose:
        return table(_HEAD, [_row(context, t, False) for t in shown])
    lines: list[str] = []
    for t in shown:
        lines += table(f"{_HEAD}  CACHE  LASTLOG  CONTENTS", [_row(context, t, True)])
        lines += [f"    {context.frames.name(address)}" for address in t.stack]
    return lines


def bufctl_audit(context: Context, words: list[str]) -> list[str]:
    return bufctl(context, ["-v", *words])


def records_by(context: Context, thread: int, allocated: bool) -> list[Record]:
    """Of objects that the thread was the last to allocate, or to free; the newest first."""
    debugged = context.moment.debugged
    found = []
    for cache in debugged.caches:
        if not debugged.has_audit(cache):
            continue
        t = debugged.tagged(cache)
        records = debugged.records(t, np.flatnonzero(t.is_allocated if allocated else t.is_free))
        of_thread = (records.thread == thread) & (records.nanoseconds != 0) & (records.cache != 0)
        found += [records.at(i) for i in np.flatnonzero(of_thread).tolist()]
    return sorted(found, key=lambda r: -r.nanoseconds)


def _done_by(context: Context, words: list[str], name: str) -> list[str]:
    rest = split(words, "", "", 1, f"{name} THREAD").rest
    if not rest or not rest[0].isdecimal():
        raise TerraceError(f"usage: {name} THREAD (its number, as the kernel has it)", 2)
    records = records_by(context, int(rest[0]), name == "allocdby")
    rows = [
        [f"{r.address:x}", when(r.nanoseconds), _caller(context.frames, r.stack)] for r in records
    ]
    return table("BUFCTL  TIMESTAMP  CALLER", rows)


def allocdby(context: Context, words: list[str]) -> list[str]:
    return _done_by(context, words, "allocdby")


def freedby(context: Context, words: list[str]) -> list[str]:
    return _done_by(context, words, "freedby")


def _log_name(words: list[str], usage: str) -> str:
    rest = split(words, "", "", 1, usage).rest
    name = rest[0] if rest else "transaction"
    if name not in NAMES:
        raise TerraceError(f"usage: {usage}", 2)
    return name


def entries_of(context: Context, name: str) -> list[Entry]:
    reader = LogReader(context.umem, context.memory)
    if not reader.bytes_of(name):
        raise TerraceError(
            f"the {name} log is not active: start the program with UMEM_LOGGING={name}"
            + (" and UMEM_DEBUG=audit" if name in ("transaction", "contents") else "")
        )
    return reader.entries(name)


def umalog(context: Context, words: list[str]) -> list[str]:
    """Times are before the newest entry."""
    entries = entries_of(context, _log_name(words, "umalog [fail|slab]"))
    names = {c.address: c.name for c in context.caches}
    latest = entries[0].nanoseconds if entries else 0
    lines: list[str] = []
    for e in entries:
        name = names.get(e.cache, "-" if e.cache == 0 else f"cache {e.cache:#x}")
        lines.append(f"T-{when(latest - e.nanoseconds)}  addr={e.object:x}  {name}")
        lines += [f"         {context.frames.name(address)}" for address in e.stack]
        lines.append("")
    return lines or ["the log is empty"]


def umem_log(context: Context, words: list[str]) -> list[str]:
    """CPU is the number of the chunk: entries of one chunk were written by one CPU."""
    entries = entries_of(context, _log_name(words, "umem_log [fail|slab]"))
    rows = [
        [f"{e.chunk}", f"{e.address:x}", f"{e.object:x}", when(e.nanoseconds), str(e.thread)]
        for e in entries
    ]
    return table("CPU  ADDR  BUFADDR  TIMESTAMP  THREAD", rows)
