# SPDX-License-Identifier: MIT OR Apache-2.0
"""The debugger's commands inside gdb, on whatever gdb looks at: a live process or a core file.

    (gdb) source integrations/gdb/terrace-gdb.py
    (gdb) umem umastat
    (gdb) umem findleaks
    (gdb) umem whatis ADDRESS
    (gdb) umem umem_cache
    (gdb) umem walk umem NAME-OF-A-CACHE

The decoder is tools/terrace/debug, which needs numpy, scipy and pyelftools: those of the checkout's
environment (build/.venv) where that is of gdb's own version of Python, else the system's.
"""

import re
import sys
from pathlib import Path

import gdb

_ROOT = Path(__file__).resolve().parents[2]
_VERSION = f"python{sys.version_info.major}.{sys.version_info.minor}"
for _path in (_ROOT / "tools", _ROOT / "build" / ".venv" / "lib" / _VERSION / "site-packages"):
    if _path.is_dir() and str(_path) not in sys.path:
        sys.path.append(str(_path))

try:
    import numpy as np

    from terrace.debug.core import CoreTarget
    from terrace.debug.live import Pages, read_maps
    from terrace.debug.memory import Copy, Mapping, Memory, Segment, Thread, UnreadableError
    from terrace.debug.target import Capture, Described, Select, Target, described
    from terrace.debug.umem.commands import COMMANDS, run
    from terrace.errors import TerraceError
except ImportError as error:
    raise gdb.GdbError(
        f"terrace-gdb: gdb's {_VERSION} finds no {error.name}: run `./terrace umastat` once in the "
        "checkout, or install python3-numpy, python3-scipy and python3-pyelftools"
    ) from None

_CORE = re.compile(r"core dump file:\n\s*[`'](.*)', file type ")
_THREAD_POINTERS = ("fs_base", "tpidr")  # of x86-64, of aarch64
_COMPOUND = (gdb.TYPE_CODE_UNION, gdb.TYPE_CODE_STRUCT)
_WORDS = {"v8_int64", "v4_int64", "v2_int64"}  # a vector register as words: the widest has all
_PIECE = 64 << 20


def _executed(command: str) -> str:
    try:
        text: str = gdb.execute(command, to_string=True)
    except gdb.error:
        return ""
    return text


class GdbMemory(Memory):
    """As gdb reads it."""

    def read(self, address: int, size: int) -> bytes:
        try:
            return bytes(gdb.selected_inferior().read_memory(address, size))
        except (gdb.MemoryError, OverflowError, gdb.error):
            raise UnreadableError(address) from None


def _words_of(frame: gdb.Frame, register: str) -> list[int]:
    """One number, or those of a vector; nothing where there is no such register."""
    try:
        value = frame.read_register(register)
        names = [f.name for f in value.type.fields()] if value.type.code in _COMPOUND else []
        wide = max(_WORDS.intersection(names), default=None)
        numbers = [value] if wide is None else [value[wide][i] for i in range(int(wide[1]))]
        return [int(n) % (1 << 64) for n in numbers]
    except (gdb.error, ValueError, TypeError):
        return []


def _thread(thread: gdb.InferiorThread) -> Thread:
    thread.switch()
    frame = gdb.newest_frame()
    registers = frame.architecture().registers
    names = [register.name for kind in ("general", "vector") for register in registers(kind)]
    words = [word for name in dict.fromkeys(names) for word in _words_of(frame, name)]
    pc, sp = (_words_of(frame, name)[0] for name in ("pc", "sp"))
    tp = next((word for name in _THREAD_POINTERS for word in _words_of(frame, name)), 0)
    return Thread(thread.ptid[1], pc, sp, np.array(words, np.uint64), tp)


class GdbTarget(Target):
    """The process that is selected."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self.title = f"process {pid}"
        self.memory = GdbMemory()

    def mappings(self) -> list[Mapping]:
        return read_maps(Path(f"/proc/{self._pid}/maps").read_text(errors="replace"))

    def descriptors(self) -> list[Described]:
        return list(described(self.memory, self.mappings()))

    def capture(self, select: Select, registers: bool = True) -> Capture:  # noqa: ARG002
        """The process does not run: it is as gdb has it."""
        mappings = self.mappings()
        pages = Pages(self._pid)
        segments = []
        for start, end in select(mappings):
            for first, size in pages.runs(start, end).tolist():
                segments += self._segments(first, first + size)
        chosen = gdb.selected_thread()
        try:
            threads = [_thread(t) for t in gdb.selected_inferior().threads()]
        finally:
            if chosen is not None:
                chosen.switch()
        program = gdb.current_progspace().filename or ""
        inside = len(self.inside(mappings, threads, program))
        return Capture(Copy(segments, self.memory), mappings, threads, inside=inside)

    def _segments(self, start: int, end: int) -> list[Segment]:
        found = []
        for at in range(start, end, _PIECE):
            try:
                data = self.memory.read(at, min(_PIECE, end - at))
            except UnreadableError:
                continue
            found.append(Segment(at, np.frombuffer(data, np.uint8)))
        return found


def _target() -> Target:
    """What is selected. A core file is read as it is without gdb."""
    inferior = gdb.selected_inferior()
    about = _executed("info target")
    if inferior.is_valid() and inferior.pid != 0:
        if "Native process" in about:
            return GdbTarget(inferior.pid)
        if core := _CORE.search(about):
            return CoreTarget(Path(core[1]))
        raise TerraceError("only processes of this machine, and core files, can be looked at")
    raise TerraceError("there is no process and no core file: start or load one first")


def _address(text: str) -> int:
    """An expression of the program's language, or plain hexadecimal."""
    try:
        return int(gdb.parse_and_eval(text)) % (1 << 64)
    except gdb.error as error:
        try:
            return int(text, 16)
        except ValueError:
            raise TerraceError(str(error)) from None


class Umem(gdb.Command):  # type: ignore[misc]  # gdb has no types
    """Looks at the heap of Terrace: umem umastat, umem findleaks, umem whatis ADDRESS, ...

    Without a name, all commands are listed. An address is any expression, or plain hexadecimal.
    """

    def __init__(self) -> None:
        super().__init__("umem", gdb.COMMAND_DATA)

    def invoke(self, argument: str, from_tty: bool) -> None:  # noqa: ARG002
        try:
            report, _ = run(_target(), _address, gdb.string_to_argv(argument))
        except TerraceError as error:
            raise gdb.GdbError(str(error)) from None
        gdb.write("".join(f"{line}\n" for line in report))

    def complete(self, text: str, word: str) -> list[str]:  # noqa: ARG002
        return [name for name in COMMANDS if name.startswith(word)]


Umem()
