# SPDX-License-Identifier: MIT OR Apache-2.0
"""umem_status and umem_cache."""

from terrace.debug.umem.context import Context, split
from terrace.debug.umem.logs import NAMES, LogReader
from terrace.debug.umem.usage import caches
from terrace.errors import TerraceError
from terrace.report.text import table


def message_buffer(context: Context) -> list[str]:
    """What the library had to say, the last 8 KiB of it."""
    umem, memory = context.umem, context.memory
    ring = memory.read(umem.address("error_buffer"), _RING)
    begin = memory.number(umem.address("error_begin"), 4) % _RING
    older, newer = ring[begin:].strip(b"\0"), ring[:begin]
    text = (b"..." + older if older else b"") + newer
    return text.decode(errors="replace").splitlines()


_RING = 8192


def umem_status(context: Context, words: list[str]) -> list[str]:
    split(words, "", "", 0, "umem_status")
    if not any(each.umem is not None for each in context.target.descriptors()):
        return ["Status:         not loaded"]
    try:
        umem = context.umem
    except TerraceError:
        return ["Status:         uninitialized"]
    layout = context.target.layout
    reader = LogReader(umem, context.memory)
    logs = []
    for name in NAMES:
        size = reader.bytes_of(name)
        logs.append(f"{name}={size // 1024}k" if size else f"{name} (inactive)")
    cores = layout.of_heap(context.memory, "core.count")
    return [
        "Status:         ready and active",
        f"Concurrency:    {cores}",
        f"Logs:           {' '.join(logs)}",
        "Message buffer:",
        *message_buffer(context),
    ]


def umem_cache(context: Context, words: list[str]) -> list[str]:
    rest = split(words, "", "", 1, "umem_cache [CACHE]").rest
    wanted = context.cache(rest[0]).address if rest else None
    rows = [
        [
            f"{u.cache.address:x}", u.cache.name, f"{u.cache.debug:04x}",
            f"{u.cache.flags:08x}", str(u.cache.size), str(u.total),
        ]
        for u in caches(context.target.layout, context.umem, context.memory)
        if wanted is None or u.cache.address == wanted
    ]  # fmt: skip
    return table("ADDR  NAME  FLAG  CFLAG  >BUFSIZE  >BUFTOTL", rows)
