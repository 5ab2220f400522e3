# SPDX-License-Identifier: MIT OR Apache-2.0
"""Every misuse, and what each level of checking says about it. docs/guide/misuse.md has its table from here.

What the default level catches, and when:
  at once      a double free of the block that was freed last, large blocks, pointers outside of all blocks, pointers that
               are not multiples of 16, realloc and malloc_usable_size of what is not a block
  later        other double frees: when the magazine leaves the core level, or when both copies reach the global level;
               multiples of 16 inside a block, two threads that free at the same instant: when the block reaches the
               global level; so the programs end with malloc_trim(0), which sends everything there. Memory that belonged to
               a block and belongs to nobody now counts as freed twice
  never        a write to a free block, which breaks nothing of the library's, or beyond a live one; a second free after
               the block has a new owner; realloc of a freed block to a size that it has; a wrong size of a sized delete
"""

import re
import signal
from dataclasses import dataclass, field

LEVELS = ["default", "check", "hardened"]
ABORTED, FAULTED = -signal.SIGABRT, -signal.SIGSEGV

DOUBLE_FREE = r"terrace: free\(\): double free of {pointer}\n"
INVALID_FREE = r"terrace: free\(\): invalid pointer {pointer}\n"
WRITTEN = r"terrace: malloc\(\): block {pointer} was written after it was freed\n"
WRITTEN_AT_EXIT = r"terrace: exit\(\): block {pointer} was written after it was freed\n"
WRITTEN_AT_TRIM = r"terrace: malloc_trim\(\): block {pointer} was written after it was freed\n"
INVALID_REALLOC = r"terrace: realloc\(\): invalid pointer {pointer}\n"
INVALID_USABLE = r"terrace: malloc_usable_size\(\): invalid pointer {pointer}\n"
# What realloc finds depends on whether it would move: both names are true.
REALLOC_OF_FREED = r"terrace: (realloc|free)\(\): (double free of|invalid pointer) {pointer}\n"
# Threads that free a block in the same instant may both find it live; what is found then is the second push over the first.
RACE = r"terrace: (free\(\): double free of|(malloc|free)\(\): block) {pointer}( was written after it was freed)?\n"
WRITTEN_ANYWHERE = r"terrace: (malloc|free|malloc_trim)\(\): block {pointer} was written after it was freed\n"
UNNOTICED = ""
SILENT = "()"  # noticed, but nobody can read it

SMALL = ["1", "16", "24", "48", "100", "250", "1010", "4096", "20000", "30000"]
LARGE = ["40000", "131072", "1048576", "67108864"]


@dataclass
class Case:
    """A program with its arguments. What it says is a regular expression of all of standard error, in which {pointer} stands
    for what the program announced."""

    kind: str  # row of the table
    program: str
    arguments: list
    says: str  # at the default level, and at others unless `levels` says otherwise
    levels: dict = field(default_factory=dict)  # level: text, or None where the program has nothing to show
    status: int = ABORTED
    names_pointer: bool = True
    options: str = "1,sample:0"  # TERRACE_CHECK at the level check
    output: str = ""  # what follows the announcement on standard output

    def expected(self, level):
        return self.levels.get(level, self.says)

    def expected_status(self, level):
        return 0 if self.expected(level) == UNNOTICED and self.status == ABORTED else self.status


def inside(function, size, offset):
    return rf"terrace: {function}\(\): invalid pointer {{pointer}}, {offset} bytes into the block of {size} bytes at 0x[0-9a-f]+\n"


def damaged(function, size, side):
    return rf"terrace: {function}\(\): block {{pointer}} of {size} bytes was written {side}\n"


def double_frees():
    for size in SMALL:
        yield Case("double free, at once", "double_free", [size], DOUBLE_FREE)
        # 1,000 blocks of 20,000 bytes are more than the quarantine holds: the block is nobody's any more.
        left = {"check": INVALID_FREE} if int(size) >= 20000 else {}
        yield Case("double free, after other frees", "double_free_after_others", [size], DOUBLE_FREE, left)
        if int(size) <= 1010:  # larger ones are more than the depots keep of 20,000, and the slabs would find it
            yield Case("double free, both in a magazine", "double_free_in_a_magazine", [size], DOUBLE_FREE)
        yield Case("double free, after malloc_trim", "double_free_after_trim", [size], DOUBLE_FREE)
        yield Case("double free, by another thread", "double_free_across_threads", [size], DOUBLE_FREE)
    for size in LARGE:
        yield Case("double free, large block", "double_free", [size], DOUBLE_FREE)
        yield Case("double free, large block", "double_free_across_threads", [size], DOUBLE_FREE)
        yield Case("double free, large block", "double_free_after_trim", [size], DOUBLE_FREE)
    for size in ["48", "1010"]:
        yield Case("double free, block handed out again", "double_free_after_reuse", [size], UNNOTICED, {"check": DOUBLE_FREE})
    # At the default level it depends on whether the next large block begins in the same line of the span.
    yield Case("double free, block handed out again", "double_free_after_reuse", ["300000"], DOUBLE_FREE,
               {"default": None, "hardened": None})
    for size in ["24", "2000"]:
        yield Case("double free, two threads in one instant", "double_free_race", [size], RACE, names_pointer=False)
    for which in ["plain", "array", "aligned"]:
        yield Case("double free, at once", "double_delete", [which], DOUBLE_FREE)
    yield Case("double free, at once", "double_free_without_stderr", [], SILENT, names_pointer=False)


def invalid_pointers():
    for size, offset in [("256", "1"), ("256", "8"), ("16", "8"), ("5000", "4088"), ("30000", "17")]:
        yield Case("interior pointer, odd", "free_interior", [size, offset], INVALID_FREE, {"check": inside("free", size, offset)})
    for size, offset in [("256", "16"), ("48", "32"), ("5000", "4096"), ("30000", "16"), ("1010", "512")]:
        yield Case("interior pointer, multiple of 16", "free_interior", [size, offset], INVALID_FREE,
                   {"check": inside("free", size, offset)})
    for size, offset in [("100", "48"), ("1000", "64")]:
        yield Case("interior pointer, then malloc", "free_interior_reused", [size, offset], INVALID_FREE,
                   {"check": inside("free", size, offset)})
    for size, offset in [("40000", "1"), ("40000", "16"), ("1048576", "4096"), ("1048576", "65536"), ("1048576", "1048560")]:
        yield Case("interior pointer, large block", "free_interior", [size, offset], INVALID_FREE,
                   {"check": inside("free", size, offset)})
    for program, where in [("free_stack", "stack"), ("free_static", "static data"), ("free_foreign", "mmap")]:
        yield Case(f"foreign pointer, {where}", program, [], INVALID_FREE)
    for number in ["1", "16", "4096", "0x1000000000", "0x7fffffffffff", "0x800000000000", "0x4141414141414140",
                   "0xfffffffffffffff0"]:
        yield Case("invalid pointer, any number", "free_number", [number], INVALID_FREE)
    for which in ["stack", "static"]:
        yield Case("realloc of what is no block", "realloc_wild", [which], INVALID_REALLOC)
    for which, size, offset in [("interior", 4096, 64), ("odd", 4096, 1), ("large", 1 << 20, 4096)]:
        yield Case("realloc of what is no block", "realloc_wild", [which], INVALID_REALLOC,
                   {"check": inside("realloc", size, offset)})
    yield Case("malloc_usable_size of what is no block", "usable_size_wild", ["stack"], INVALID_USABLE)
    yield Case("malloc_usable_size of what is no block", "usable_size_wild", ["interior"], INVALID_USABLE,
               {"check": inside("malloc_usable_size", 4096, 64)})
    for size, wanted in [("48", "100"), ("48", "40"), ("48", "48"), ("48", "20"), ("1000", "10"), ("1000", "100000"),
                         ("20000", "0"), ("100000", "200000"), ("100000", "100"), ("1048576", "1048576")]:
        stays = {"default": UNNOTICED} if size == "48" and wanted != "100" else {}
        yield Case("realloc of a freed block", "realloc_freed", [size, wanted], REALLOC_OF_FREED, stays)


def writes():
    for size in ["16", "48", "100", "1010", "20000"]:
        later = {"default": UNNOTICED, "check": WRITTEN_AT_EXIT}
        yield Case("write after free, first word", "write_after_free", [size], WRITTEN, later)
        yield Case("write after free, first word", "write_after_free", [size, "1"], WRITTEN, later)
        yield Case("write after free, first word", "write_after_free_then_trim", [size], WRITTEN_ANYWHERE,
                   {"default": UNNOTICED})
    for size, offset in [("100", "40"), ("1010", "1009"), ("20000", "10000")]:
        yield Case("write after free, elsewhere", "write_after_free_at", [size, offset], UNNOTICED,
                   {"check": WRITTEN_AT_TRIM, "hardened": WRITTEN})
    for size, offset in [("300000", "0"), ("300000", "299999"), ("2000000", "1000000")]:
        yield Case("write after free, large block", "write_after_free_at", [size, offset], UNNOTICED, {"check": WRITTEN_AT_TRIM})
    beyond, before = "beyond its end", "before its start"
    for size, kind in [(24, "small"), (100, "small"), (4096, "small"), (300000, "large")]:
        for how, function in [("free", "free"), ("realloc", "realloc"), ("trim", "malloc_trim"), ("exit", "exit")]:
            yield Case(f"overflow, {kind} block", "bounds", [str(size), str(size), "1", how], UNNOTICED,
                       {"check": damaged(function, size, beyond)})
            yield Case(f"underflow, {kind} block", "bounds", [str(size), "-1", "1", how], UNNOTICED,
                       {"check": damaged(function, size, before)})


def sizes():
    def wrong(function, is_, not_):
        return {"check": rf"terrace: {function}\(\): block {{pointer}} has {is_}, not {not_}\n"}

    yield Case("sized delete, wrong size", "sized_delete_wrong", ["plain"], UNNOTICED, wrong("operator delete", "100 bytes", "50"))
    yield Case("sized delete, wrong size", "sized_delete_wrong", ["array"], UNNOTICED, wrong("operator delete", "100 bytes", "101"))
    yield Case("sized delete, wrong size", "sized_delete_wrong", ["aligned"], UNNOTICED,
               wrong("operator delete", "100 bytes", "64"))
    yield Case("sized delete, wrong alignment", "sized_delete_wrong", ["alignment"], UNNOTICED,
               wrong("operator delete", "alignment 64", "128"))
    yield Case("sized delete, right", "sized_delete_wrong", ["right"], UNNOTICED)
    yield Case("sized delete, wrong size", "free_sized_wrong", [], UNNOTICED, wrong("free_sized", "100 bytes", "1"),
               names_pointer=False)
    yield Case("negative and huge sizes", "huge_sizes", [], UNNOTICED)
    yield Case("negative and huge sizes", "huge_new", [], UNNOTICED)


def hardening():
    yield Case("write below all blocks", "below_heap", [], SILENT, status=FAULTED, names_pointer=False)
    yield Case("nothing to read in free blocks, no order", "hardened", [], UNNOTICED, {"default": None, "check": None})


SAMPLED = {"default": None, "hardened": None}
STACK = r"( at\n(    #\d+ \S+( \([^\n]*\))?\n)*    #\d+ {program}\+0x[0-9a-f]+[^\n]*\n(    #\d+ [^\n]*\n)*)"
ALLOCATED = rf"  allocated by thread \d+{STACK}"
FREED = rf"  freed by thread \d+{STACK}"


def sampled():
    """Blocks beside guard pages: the report has the stacks of whoever allocated and freed the block."""

    def case(kind, what, size, says, *more, options="1,sample:1", **others):
        says = says.replace("{program}", "misuse_guarded")
        return Case(kind, "guarded", [what, str(size), *more], says, SAMPLED, options=options, **others)

    def fault(access, distance, where, size, traces):
        return (rf"terrace: {access} at 0x[0-9a-f]+, {distance} bytes {where} block of {size} bytes at {{pointer}}\n"
                rf"  {access} by thread \d+ at\n    #0 misuse_guarded\+0x[0-9a-f]+[^\n]*\n" + traces)

    beyond = "beyond the end of the"
    before = "before the start of the"
    into = "into the freed"
    for size, slack in [(64, 0), (100, 12), (4096, 0), (1, 15)]:
        yield case("sampled: access beyond the end", "overflow", size, fault("write", slack, beyond, size, ALLOCATED), status=FAULTED)
        yield case("sampled: access beyond the end", "overread", size, fault("read", slack + 4, beyond, size, ALLOCATED),
                   status=FAULTED)
        yield case("sampled: access before the start", "underflow", size, fault("write", 1, before, size, ALLOCATED), status=FAULTED)
        for access in ["read", "write"]:
            yield case("sampled: access after free", access + "_freed", size,
                       fault(access, size // 2, into, size, ALLOCATED + FREED), status=FAULTED)
        yield case("sampled: double free", "double_free", size, DOUBLE_FREE + ALLOCATED + FREED)
        yield case("sampled: realloc of a freed block", "realloc_freed", size,
                   r"terrace: realloc\(\): double free of {pointer}\n" + ALLOCATED + FREED)
    yield case("sampled: access beyond the end", "slack", 100, damaged("free", 100, "beyond its end") + ALLOCATED + FREED)
    yield case("sampled: access beyond the end", "slack_before", 100, damaged("free", 100, "beyond its end") + ALLOCATED + FREED)
    yield case("sampled: interior pointer", "interior", 100,
               r"terrace: free\(\): invalid pointer 0x[0-9a-f]+, 16 bytes into the block of 100 bytes at {pointer}\n" + ALLOCATED)
    yield case("sampled: access after free", "read_freed", 64, fault("read", 32, into, 64, ALLOCATED + FREED), "handled",
               status=33, output="handled\n")
    yield case("sampled: one block in 20", "read_freed", 64, fault("read", 32, into, 64, ALLOCATED + FREED),
               options="1,sample:20", status=FAULTED)


def all_cases():
    yield from double_frees()
    yield from invalid_pointers()
    yield from writes()
    yield from sizes()
    yield from sampled()
    yield from hardening()


def problem_of(case, level, result):
    """None if the process ended as the case wants, else what is wrong."""
    if result.returncode != case.expected_status(level):
        return f"ended with {result.returncode} instead of {case.expected_status(level)}; standard error: {result.stderr!r}"
    says = case.expected(level)
    pointer = r"0x[0-9a-f]+"
    if case.names_pointer and says:
        announced = re.fullmatch(r"misused (0x[0-9a-f]+)\n" + case.output, result.stdout)
        if announced is None:
            return f"announced {result.stdout!r}"
        pointer = announced.group(1)
    if not re.fullmatch(says.replace("{pointer}", pointer), result.stderr):
        return f"wrote {result.stderr!r} instead of {says.replace('{pointer}', pointer)!r}"
    return None
