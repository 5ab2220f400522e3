# SPDX-License-Identifier: MIT OR Apache-2.0
"""Why a program left no statistics: looks at the file that was executed, and at what it needs."""

import contextlib
import os
import shutil
import signal
import stat
import struct

from terrace import launch

_PT_INTERP = 3
_ELF_32, _ELF_64 = 1, 2

# Their `exit` is _exit(), which no library can see. (bash and zsh use exit().)
_SHELLS_BY_EXIT = ("dash", "busybox", "toybox", "posh")


def executed_file(program: str) -> str:
    """What the kernel loads in the end: of a script, its interpreter."""
    path = os.path.realpath(shutil.which(program) or program)
    for _ in range(4):  # the kernel's own bound
        with contextlib.suppress(OSError), open(path, "rb") as file:
            line = file.readline(256)
            if line[:2] == b"#!" and line[2:].split():
                words = line[2:].split()
                word = words[0] if words[0] != b"/usr/bin/env" or len(words) < 2 else words[1]
                name = os.fsdecode(word)
                path = os.path.realpath(shutil.which(name) or name)
                continue
        break
    return path


def elf_class(path: str) -> int:
    """1 or 2 for an ELF file of 32 or 64 bits, 0 for anything else."""
    try:
        with open(path, "rb") as file:
            head = file.read(5)
    except OSError:
        return 0
    return head[4] if len(head) == 5 and head[:4] == b"\x7fELF" else 0


def is_static(path: str) -> bool:
    """Whether a 64-bit ELF file asks for no dynamic linker; False for anything else (scripts)."""
    if elf_class(path) != _ELF_64:
        return False
    try:
        with open(path, "rb") as file:
            head = file.read(64)
            if len(head) < 64:
                return False
            offset = struct.unpack_from("<Q", head, 32)[0]
            entry_size, entries = struct.unpack_from("<HH", head, 54)
            file.seek(offset)
            table = file.read(entry_size * entries)
    except OSError:
        return False
    types = (
        struct.unpack_from("<I", table, i * entry_size)[0] for i in range(len(table) // entry_size)
    )
    return _PT_INTERP not in types


def _signal_name(number: int) -> str:
    return signal.Signals(number).name if number in set(signal.Signals) else str(number)


def why_no_statistics(program: str, ending: launch.Ending) -> str:
    """One sentence for a run that left no statistics."""
    if ending.signal:
        return f"{program} was killed by {_signal_name(ending.signal)} before it could write them"
    path = executed_file(program)
    with contextlib.suppress(OSError):
        if os.stat(path).st_mode & (stat.S_ISUID | stat.S_ISGID):
            return f"{program} is setuid or setgid, where the system ignores LD_PRELOAD"
    if elf_class(path) == _ELF_32:
        return f"{program} is a 32-bit program; Terrace is built for 64 bits and was not loaded"
    if is_static(path):
        return f"{program} is statically linked, nothing can be preloaded into it"
    if os.path.basename(path) in _SHELLS_BY_EXIT:
        return (
            f"{program} is {os.path.basename(path)}, which ran on Terrace but ends with _exit(), "
            "where none are written; nor did a program that it started leave any"
        )
    return (
        f"{program} left none; they are written at exit(), not at _exit(), and LD_PRELOAD must "
        "stay in the environment of the programs that it executes"
    )
