# SPDX-License-Identifier: MIT OR Apache-2.0
"""Names of libumem's debugger commands, for `terrace umem` and for gdb."""

from collections.abc import Callable

from terrace.debug import damage, reports
from terrace.debug.target import Target
from terrace.debug.umem.check import umem_verify
from terrace.debug.umem.context import Context
from terrace.debug.umem.history import (
    allocdby,
    bufctl,
    bufctl_audit,
    freedby,
    umalog,
    umem_log,
)
from terrace.debug.umem.malloc_info import umem_malloc_dist, umem_malloc_info
from terrace.debug.umem.search import ugrep
from terrace.debug.umem.segments import vmem, vmem_seg
from terrace.debug.umem.status import umem_cache, umem_status
from terrace.debug.umem.users import umausers
from terrace.debug.umem.walkers import walk
from terrace.errors import TerraceError

Command = Callable[[Context, list[str]], list[str]]


def _umastat(context: Context, words: list[str]) -> list[str]:
    if words:
        raise TerraceError("usage: umastat", 2)
    return reports.umastat(context.target)


def _verify(context: Context, words: list[str]) -> list[str]:
    if words:
        raise TerraceError("usage: verify", 2)
    lines, context.status = reports.verify(context.target)
    return lines


def _whatis(context: Context, words: list[str]) -> list[str]:
    if len(words) != 1:
        raise TerraceError("usage: whatis ADDRESS", 2)
    return reports.whatis(context.target, context.evaluate(words[0]))


def _findleaks(context: Context, words: list[str]) -> list[str]:
    """As mdb has it, a function keeps only stacks through it."""
    functions = [word for word in words if word != "--all"]
    if len(functions) > 1 or any(word.startswith("-") for word in functions):
        raise TerraceError("usage: findleaks [--all] [FUNCTION]", 2)
    through = functions[0] if functions else None
    return reports.findleaks(context.target, "--all" in words, through)


def _walk(context: Context, words: list[str]) -> list[str]:
    if not 1 <= len(words) <= 2:
        raise TerraceError("usage: walk NAME [ADDRESS]", 2)
    return [f"{address:x}" for address in walk(context, *words)]


COMMANDS: dict[str, Command] = {
    "umastat": _umastat,
    "findleaks": _findleaks,
    "verify": _verify,
    "whatis": _whatis,
    "walk": _walk,
    "umem_status": umem_status,
    "umem_cache": umem_cache,
    "umem_verify": umem_verify,
    "umausers": umausers,
    "umalog": umalog,
    "umem_log": umem_log,
    "bufctl": bufctl,
    "bufctl_audit": bufctl_audit,
    "allocdby": allocdby,
    "freedby": freedby,
    "ugrep": ugrep,
    "vmem": vmem,
    "vmem_seg": vmem_seg,
    "umem_malloc_info": umem_malloc_info,
    "umem_malloc_dist": umem_malloc_dist,
}


def run(target: Target, evaluate: Callable[[str], int], words: list[str]) -> tuple[list[str], int]:
    """What a command says, and the exit status.

    What can not be decoded is one line, whatever the memory holds.
    """
    if not words or words[0] not in COMMANDS:
        said = f"there is no command {words[0]}: " if words else "usage: one of "
        raise TerraceError(said + ", ".join(COMMANDS), 2)
    with damage.expected(words[0]):
        context = Context(target, evaluate)
        return COMMANDS[words[0]](context, words[1:]), context.status
