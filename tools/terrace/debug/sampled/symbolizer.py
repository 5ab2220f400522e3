# SPDX-License-Identifier: MIT OR Apache-2.0
"""From addresses of code to functions, inlined ones too, and lines: by drgn, which reads DWARF.

drgn also unwinds a copy of a stack by the program's own tables (.eh_frame), and by frame pointers
where there is no table. Where drgn can not be had, functions are those of the symbol tables, and
stacks those that frame pointers give.
"""

import contextlib
import functools
import os
import shutil
import subprocess
from typing import Any

from terrace.debug.sampled.frames import Line, Location
from terrace.debug.sampled.images import Images
from terrace.debug.sampled.known_stacks import KnownStacks
from terrace.debug.sampled.perf_map import PerfMap, line_of
from terrace.debug.sampled.table import Copy
from terrace.debug.symbols import function_in
from terrace.messages import say

try:
    import drgn

    drgn.Program.extra_module  # noqa: B018 - since 0.0.31
except (ImportError, AttributeError):
    drgn = None  # type: ignore[assignment]

# struct pt_regs of x86-64, and where the table of samples has each: by DWARF's numbers.
_PT_REGS = "r15 r14 r13 r12 bp bx r11 r10 r9 r8 ax cx dx si di orig_ax ip cs flags sp ss"
_MANGLED = ("_Z", "_R")  # C++, Rust
# What a called function gives back as it was, with drgn's names.
_KEPT = {"bx": "rbx", "bp": "rbp", "r12": "r12", "r13": "r13", "r14": "r14", "r15": "r15"}
_WORD = 8
_DWARF = "ax dx cx bx si di bp sp r8 r9 r10 r11 r12 r13 r14 r15"


def has_unwinder() -> bool:
    return drgn is not None and os.uname().machine == "x86_64"


@functools.cache
def _tell_that_stacks_end_early() -> None:
    say(
        "the stacks are those of frame pointers alone, and may end early: "
        "what was copied of them is unwound by drgn 0.0.31 or later, on x86-64"
    )


def demangled(names: list[str]) -> dict[str, str]:
    """Of C++ and Rust, without parameters; c++filt gets all at once."""
    mangled = [name for name in dict.fromkeys(names) if name.startswith(_MANGLED)]
    tool = shutil.which("c++filt")
    if tool is None or not mangled:
        return {}
    done = subprocess.run(
        [tool, "--no-params"], input="\n".join(mangled), capture_output=True, text=True, check=False
    )
    return dict(zip(mangled, done.stdout.splitlines(), strict=False))


class _Drgn:
    """drgn's view of the process: its files at their addresses, and one stack at a time."""

    def __init__(self, images: Images, made: PerfMap) -> None:
        self._made = made
        self._stack = (0, b"")
        self._stacks = KnownStacks()
        self.program = drgn.Program(drgn.Platform(drgn.Architecture.X86_64))
        self.program.add_memory_segment(0, (1 << 64) - 1, self._read)
        modules = [self._module(image) for image in images.images]
        wanting = [m for m in modules if m.wants_debug_file()]
        with contextlib.suppress(Exception):  # what is not there is not there
            self.program.load_module_debug_info(*wanting)
        number = self.program.int_type("unsigned long", 8, False)
        names = _PT_REGS.split()
        members = [drgn.TypeMember(number, n, bit_offset=64 * i) for i, n in enumerate(names)]
        self._registers = self.program.struct_type("pt_regs", 8 * len(names), members)

    def _module(self, image: Any) -> Any:
        module = self.program.extra_module(image.path, image.start, create=True)
        module.address_range = (image.start, image.end)
        if image.build_id:
            module.build_id = image.build_id  # a file that has another one is not taken
        with contextlib.suppress(Exception):
            module.try_file(image.file)
        return module

    def _read(self, address: int, count: int, _offset: int, _physical: bool) -> bytes:
        start, data = self._stack
        if not start <= address <= start + len(data) - count:
            raise drgn.FaultError("not copied", address)
        return data[address - start : address - start + count]

    def _word(self, address: int) -> int:
        return int.from_bytes(self._read(address, _WORD, 0, False), "little")

    def lines(self, address: int) -> list[tuple[str, str, str, int]]:
        """Function, its linker name, file and line: innermost first."""
        found = []
        for frame in self.program.stack_trace_from_pcs([address]):
            linker_name = ""
            if not frame.is_inline:
                with contextlib.suppress(LookupError):
                    linker_name = frame.symbol().name
            file, line = "", 0
            with contextlib.suppress(LookupError):
                file, line, _ = frame.source()
            is_mangled = linker_name.startswith(_MANGLED)
            name = linker_name if is_mangled else frame.function_name or linker_name
            if name:
                found.append((name, linker_name, file, line))
        return found

    def unwound(self, copy: Copy) -> tuple[int, ...]:
        """Return addresses, from the caller of the innermost function on."""
        known = self._stacks.find(copy.pc, copy.data)
        if known is not None:
            return known
        values = dict(zip(_DWARF.split(), copy.registers, strict=False))
        self._stack = (values["sp"], copy.data)
        frames: list[tuple[int, int]] = []
        registers: dict[str, int] | None = {**values, "ip": copy.pc}
        while registers is not None:
            registers = self._unwind(registers, frames)
        return self._stacks.add(copy.pc, values["sp"], frames[1:])

    def _unwind(
        self, registers: dict[str, int], frames: list[tuple[int, int]]
    ) -> dict[str, int] | None:
        """Adds frames up to a trampoline of CPython's, and returns its caller's registers."""
        regs = drgn.Object(self.program, self._registers, registers)
        for frame in self.program.stack_trace(regs):
            with contextlib.suppress(LookupError):
                if not frame.is_inline:
                    frames.append((frame.sp, frame.pc))
                    if self._made.is_trampoline(frame.pc - 1):
                        return self._above_trampoline(frame)
        return None

    def _above_trampoline(self, frame: Any) -> dict[str, int] | None:
        """It has no tables. It keeps all registers, and a word of the stack between its call and
        its own return address: nothing, or its caller's frame pointer, to which bp points then."""
        known = frame.registers()
        values = {name: known[full] for name, full in _KEPT.items() if full in known}
        try:
            word, values["ip"] = self._word(frame.sp), self._word(frame.sp + _WORD)
        except drgn.FaultError:  # the copy ends there
            return None
        if values.get("bp") == frame.sp:
            values["bp"] = word
        return {**values, "sp": frame.sp + 2 * _WORD}


class Symbolizer:
    """A location for each return address."""

    def __init__(self, images: Images, made: PerfMap | None = None) -> None:
        self._images, self._made = images, made or PerfMap()
        self._drgn = _Drgn(images, self._made) if has_unwinder() else None
        self._known: dict[int, list[tuple[str, str, str, int]]] = {}

    def stack_of(self, copy: Copy) -> tuple[int, ...]:
        """() where nothing unwinds."""
        if self._drgn is None:
            _tell_that_stacks_end_early()
            return ()
        try:
            return self._drgn.unwound(copy)
        except Exception:  # drgn's own kinds of error, on memory that says anything
            return ()

    def _lines(self, address: int) -> list[tuple[str, str, str, int]]:
        if self._drgn is not None:
            with contextlib.suppress(Exception):
                return self._drgn.lines(address)
            return []
        image = self._images.image(address)
        name = function_in(image.file, address - image.start) if image else None
        return [(name, name, "", 0)] if name else []

    def locations(self, addresses: set[int]) -> dict[int, Location]:
        """By return address; the call is just before it."""
        for address in addresses - self._known.keys():
            self._known[address] = self._lines(address - 1)
        names = demangled([line[0] for a in addresses for line in self._known[a]])
        found = {}
        for address in addresses:
            region = self._images.region(address - 1)
            lines = tuple(
                Line(names.get(name, name), file, line, linker_name)
                for name, linker_name, file, line in self._known[address]
            )
            found[address] = Location(address - 1, lines or (self._unnamed(address),), region)
        return found

    def _unnamed(self, address: int) -> Line:
        image = self._images.image(address)
        if image is None:
            name = self._made.name(address - 1)
            return line_of(name) if name else Line(f"{address:#x}")
        return Line(f"{image.path.rpartition('/')[2]}+{address - image.start:#x}")
