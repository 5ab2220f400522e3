# SPDX-License-Identifier: MIT OR Apache-2.0
"""vmem and vmem_seg: arenas, and what they are cut into."""

from collections.abc import Iterator

from terrace.debug.umem.arenas import KINDS, Arena, ArenaReader, Segment, tree
from terrace.debug.umem.context import Context, split
from terrace.errors import TerraceError
from terrace.report.text import table

_TYPES = {"alloc": "allocated", **{kind: kind for kind in KINDS}}


def _number(context: Context, word: str) -> int:
    """0: it is none."""
    try:
        return context.evaluate(word)
    except TerraceError:
        return 0


def named_arena(context: Context, word: str) -> Arena | None:
    """By its name, or by its address."""
    arenas = list(ArenaReader(context.umem, context.memory))
    of_name = next((a for a in arenas if a.name == word), None)
    if of_name is not None:
        return of_name
    address = _number(context, word)
    return next((a for a in arenas if a.address == address), None)


def arena(context: Context, word: str) -> Arena:
    """One that there is."""
    found = named_arena(context, word)
    if found is None:
        raise TerraceError(f"{word} is no arena, neither a name nor an address")
    return found


def vmem(context: Context, words: list[str]) -> list[str]:
    rest = split(words, "", "", 1, "vmem [ARENA]").rest
    reader = ArenaReader(context.umem, context.memory)
    shown = [(0, arena(context, rest[0]))] if rest else tree(list(reader))
    rows = [
        [
            f"{a.address:x}", "  " * depth + a.name, str(a.in_use), str(a.total),
            str(a.allocations), str(a.failures),
        ]
        for depth, a in shown
    ]  # fmt: skip
    return table("ADDR  NAME  >INUSE  >TOTAL  >SUCCEED  >FAIL", rows)


def _chosen(context: Context, word: str | None) -> Iterator[Segment]:
    """Of an arena, or one by its address; without a word all."""
    reader = ArenaReader(context.umem, context.memory)
    if word is None:
        for a in reader:
            yield from reader.segments(a)
        return
    found = named_arena(context, word)
    if found is not None:
        yield from reader.segments(found)
        return
    address = _number(context, word)
    segments = [s for a in reader for s in reader.segments(a) if s.address == address]
    if not segments:
        raise TerraceError(f"{word} is no arena, neither a name nor an address, and no segment")
    yield from segments


_USAGE = "vmem_seg [ARENA|ADDR] [-s] [-v] [-t alloc|free|span] [-m LEAST] [-M MOST]"


def vmem_seg(context: Context, words: list[str]) -> list[str]:
    options = split(words, "sv", "tmM", 1, _USAGE)
    kind = options.values.get("t")
    if kind is not None and kind not in _TYPES:
        raise TerraceError(f"usage: {_USAGE}", 2)
    least, most = (
        context.evaluate(options.values[n]) if n in options.values else default
        for n, default in (("m", 0), ("M", 1 << 64))
    )
    rows = [
        [
            f"{s.address:x}", {"allocated": "ALLC"}.get(s.kind, s.kind.upper()[:4]),
            f"{s.start:x}", f"{s.end:x}", f"{s.size:x}",
            *([f"{s.asked:x}", "imported" if s.imported else ""] if "v" in options.flags else []),
        ]
        for s in _chosen(context, options.rest[0] if options.rest else None)
        if (kind is None or s.kind == _TYPES[kind]) and least <= s.size <= most
    ]  # fmt: skip
    names = ["ADDR", "TYPE", "START", "END", "SIZE"]
    names += ["ASKED", ""] if "v" in options.flags else []
    if "s" in options.flags:
        rows.sort(key=lambda row: int(row[4], 16))
    return table(names, rows)
