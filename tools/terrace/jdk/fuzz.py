# SPDX-License-Identifier: MIT OR Apache-2.0
"""`terrace jdk test --suite fuzz`: programs made from seeds, which allocate in every way there is.

Each batch of seeds runs on the installed JVM and then in every setting, with a collector, compilers
and a layout of objects that its number chooses: each line has to be the same. The settings get as
many batches each, until --seconds are over for each of them.
"""

import random
import time
from pathlib import Path

from terrace.jdk.programs import COLLECTORS, Program, compile_programs, run_once
from terrace.jdk.session import (
    FAILED,
    HAB,
    PASSED,
    STOCK,
    TLAB_4K,
    VERIFY,
    Session,
    Setting,
    Suite,
    usable,
)

# So small that there are collections to decide at, and TLABs end in the midst of things.
_HEAP = ("-Xmx256m", "-Xmn4m")
_PROGRAMS = 5  # of a batch

SETTINGS = (
    Setting("by thread", TLAB_4K, (*HAB, "-XX:HABLevels=core+llc+node")),
    Setting("by core", (), (*HAB, "-XX:HABAssociation=core")),
    Setting("flip", (), (*HAB, "-XX:HABAssociation=flip")),
    Setting("auto", (), (*HAB, "-XX:HABAssociation=auto")),
)
_SOON = ("-Xbatch", "-XX:CompileThresholdScaling=0.05")  # compiled while a program runs
COMPILERS = {
    "both compilers": _SOON,
    "C2": (*_SOON, "-XX:-TieredCompilation"),
    "C1": (*_SOON, "-XX:TieredStopAtLevel=1"),
    "interpreter": ("-Xint",),
    "compiled before": (
        *("-Xcomp", "-XX:CompileCommand=quiet"),
        *(f"-XX:CompileCommand=compileonly,{name}*::*" for name in ("Ways", "Made", "Driver")),
    ),
}
# C2's code meets what the others do not: the stubs behind its calls.
_SHARES = (3, 5, 1, 1, 1)
LAYOUTS = {
    "usual layout": (),
    "compact headers": ("-XX:+UseCompactObjectHeaders",),
    "objects aligned to 16": ("-XX:ObjectAlignmentInBytes=16",),
    "wide references": ("-XX:-UseCompressedOops",),
    "no escape analysis": ("-XX:-DoEscapeAnalysis", "-XX:-EliminateAllocations"),
    "verified": VERIFY,
}


def batch(number: int) -> tuple[str, tuple[str, ...]]:
    """A collector, compilers and a layout: their names, and the flags that both JVMs get."""
    chosen = random.Random(number)
    collector = chosen.choice(COLLECTORS)
    compilers = chosen.choices(tuple(COMPILERS), _SHARES)[0]
    layout = chosen.choice(tuple(LAYOUTS))
    flags = (f"-XX:+Use{collector}GC", *_HEAP, *COMPILERS[compilers], *LAYOUTS[layout])
    return f"{collector}, {compilers}, {layout}", flags


def _tell(test: str, setting: Setting, program: Program, expected: str, found: str) -> None:
    print(f"FAILED  {test}, {setting.name}: Ways {' '.join(program.words[-2:])}", flush=True)
    print(f"{found}instead of\n{expected}", flush=True)


def _batch(
    session: Session,
    suite: Suite,
    settings: list[Setting],
    classes: Path,
    number: int,
    spent: dict[str, float],
) -> None:
    """The same programs on the installed JVM and in each setting."""
    test, flags = batch(number)
    program = Program(test, ("-cp", str(classes), "Ways", str(number * _PROGRAMS), str(_PROGRAMS)))
    expected = run_once(session.stock, flags, program)
    suite.put(STOCK, test, FAILED if expected.startswith("failed") else PASSED)
    for setting in settings:
        start = time.monotonic()
        found = run_once(session.image, (*flags, *setting.stock, *setting.patched), program)
        spent[setting.name] += time.monotonic() - start
        ok = found == expected and not found.startswith("failed")
        if not ok:
            _tell(test, setting, program, expected, found)
        if suite.results.get(setting.name, {}).get(test) != FAILED:
            suite.put(setting.name, test, PASSED if ok else FAILED)


def run(session: Session) -> Suite:
    """One batch at least; a test of the result is a choice of flags, of many programs each."""
    suite = Suite("fuzz", session.level)
    settings = [s for s in usable(SETTINGS, session.image, suite) if session.wants(s.name)]
    classes = compile_programs(session.checkout, session.stock)
    spent = dict.fromkeys((s.name for s in settings), 0.0)
    began, number = time.monotonic(), session.first
    try:
        while True:
            _batch(session, suite, settings, classes, number, spent)
            number += 1
            if not spent or min(spent.values()) >= session.seconds:
                break
    except KeyboardInterrupt:
        suite.interrupted = True
    suite.seconds = time.monotonic() - began
    for name, seconds in spent.items():
        programs = (number - session.first) * _PROGRAMS
        suite.notes.append(
            f"{name}: {programs} programs, from seed {session.first * _PROGRAMS} on, "
            f"in {seconds / 60:.0f} minutes"
        )
    suite.print_counts()
    return suite
