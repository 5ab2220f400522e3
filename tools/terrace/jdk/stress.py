# SPDX-License-Identifier: MIT OR Apache-2.0
"""`terrace jdk test --suite stress`: 1,000 threads for minutes, all collections verified.

On a libjvm with assertions. Collectors and settings take turns until the time is over.
"""

import itertools
import time

from terrace.jdk.programs import COLLECTORS, Program, compile_programs, run_once
from terrace.jdk.session import FAILED, FIVE, PASSED, STOCK, VERIFY, Session, Setting, Suite, usable

_HEAP = ("-Xmx1g", "-Xmn48m", "-Xss256k")
_ROUNDS = "40"


def turns(settings: list[Setting]) -> list[tuple[str, Setting]]:
    """Every collector with every setting."""
    return [(collector, setting) for setting in settings for collector in COLLECTORS]


def run(session: Session) -> Suite:
    """At least one turn; the result of each is that of the installed JVM."""
    suite = Suite("stress", session.level)
    settings = usable(FIVE, session.image, suite)
    classes = compile_programs(session.checkout, session.stock)
    program = Program("churn, 1,000 threads", ("-cp", str(classes), "Churn", "1000", _ROUNDS))
    expected = run_once(session.stock, ("-XX:+UseParallelGC", *_HEAP), program)
    began = time.monotonic()
    runs = 0
    for collector, setting in itertools.cycle(turns(settings)):
        flags = (f"-XX:+Use{collector}GC", *_HEAP, *VERIFY, *setting.stock, *setting.patched)
        found = run_once(session.image, flags, program)
        test = f"{program.name}, {collector}"
        ok = found == expected and not found.startswith("failed")
        suite.put(STOCK, test, PASSED)
        if suite.results.get(setting.name, {}).get(test) != FAILED:
            suite.put(setting.name, test, PASSED if ok else FAILED)
        runs += 1
        suite.seconds = time.monotonic() - began
        print(
            f"{'ok' if ok else 'FAILED':7} {test}, {setting.name} ({suite.seconds:.0f} s)",
            flush=True,
        )
        if not ok:
            print(found, flush=True)
        if suite.seconds >= session.seconds:
            break
    suite.notes.append(f"{runs} runs in {suite.seconds / 60:.0f} minutes")
    suite.print_counts()
    return suite
