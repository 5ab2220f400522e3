# SPDX-License-Identifier: MIT OR Apache-2.0
"""`terrace jdk test --suite jtreg|tier1|areas|hab`: HotSpot's tests, the queue's too.

The queue's bring their flags, and run on the patched JVM alone. The others run on both JVMs.
A test that ends otherwise than on the installed JVM runs once more on both, alone, the installed
one with the setting's ordinary flags: what differs then is the buffers' doing.
"""

import re
import shutil
import time

from terrace.jdk import page
from terrace.jdk.jtreg_runner import Runner
from terrace.jdk.session import FIVE, HAB, NOT_RUN, PASSED, STOCK, Session, Setting, Suite, usable

_OFF_AND_FIVE = (Setting("off", patched=()), *FIVE)
_CORE = (*HAB, "-XX:HABAssociation=core")
_FLIP = (*HAB, "-XX:HABAssociation=flip")

# Of the suite `areas`: associations and collectors; by core, compilers and layouts of objects.
AREAS = (
    *(
        Setting(f"{name}, {collector}", (f"-XX:+Use{collector}GC",), patched)
        for name, patched in (("by core", _CORE), ("by thread", HAB), ("flip", _FLIP))
        for collector in ("Parallel", "G1", "Serial")
    ),
    Setting("by core, C1", ("-XX:TieredStopAtLevel=1",), _CORE),
    Setting("by core, C2", ("-XX:-TieredCompilation",), _CORE),
    Setting("by core, interpreter", ("-Xint",), _CORE),
    Setting("by core, compact headers", ("-XX:+UseCompactObjectHeaders",), _CORE),
    Setting("by core, objects aligned to 16", ("-XX:ObjectAlignmentInBytes=16",), _CORE),
    Setting("by core, wide references", ("-XX:-UseCompressedOops",), _CORE),
)


def _keep_log(runner: Runner, setting: str) -> None:
    """What the failing tests said."""
    name = re.sub(r"[^a-z0-9]+", "-", setting.lower())
    kept = runner.directory / f"failed-{name}"
    shutil.rmtree(kept, ignore_errors=True)
    (runner.directory / "out").rename(kept)


def _once_more(
    runner: Runner, session: Session, setting: Setting, found: dict[str, str], suite: Suite
) -> None:
    """The tests that differ, on both JVMs; what is the same now was not the buffers' doing."""
    stock = suite.results[STOCK]
    different = [t for t, result in found.items() if result != stock.get(t, NOT_RUN)]
    if not different:
        return
    _keep_log(runner, setting.name)
    words = [runner.path(test) for test in different]
    expected = runner.run(session.stock, setting.stock, words)
    again = runner.run(session.image, (*setting.stock, *setting.patched), words)
    for test in different:
        first, second, plain = found[test], again.get(test, NOT_RUN), expected.get(test, NOT_RUN)
        if second == stock.get(test, NOT_RUN):
            suite.notes.append(f"{setting.name}: {test}: {first}, then {second}")
            found[test] = second
        elif second == plain:
            flags = " ".join(setting.stock) or "when it ran again"
            suite.notes.append(f"{setting.name}: {test}: {second}; installed JDK, too, {flags}")
            found[test] = stock.get(test, NOT_RUN)


def _in_setting(
    runner: Runner, session: Session, setting: Setting, words: list[str], suite: Suite
) -> dict[str, str]:
    """The patched JVM's results; if it is interrupted, of the tests that had ended."""
    found: dict[str, str] | None = None
    try:
        found = runner.run(session.image, (*setting.stock, *setting.patched), words)
        _once_more(runner, session, setting, found, suite)
    except KeyboardInterrupt:
        suite.interrupted = True
        found = runner.ended() if found is None else found
    return found


def _stock(session: Session, runner: Runner, name: str, words: list[str]) -> dict[str, str]:
    """The installed JVM's results; of a suite that runs in parts, what is recorded does not run."""
    known = page.recorded(session, name).get(STOCK, {})
    paths = {runner.path(test): test for test in known}
    kept, asked = {}, []
    for word in words:
        found = [p for p in paths if p == word or p.startswith((f"{word}/", f"{word}#"))]
        kept.update({paths[path]: known[paths[path]] for path in found})
        if not found:
            asked.append(word)
    return {**kept, **(runner.run(session.stock, (), asked) if asked else {})}


def _run(session: Session, name: str, settings: tuple[Setting, ...]) -> Suite:
    """The installed JVM, then the patched one in each setting."""
    suite = Suite(name, session.level)
    runner = Runner(session, name)
    chosen = {}
    for setting in usable(settings, session.image, suite):
        words = [w for w in runner.words if session.wants(f"{setting.name}: {runner.line(w)}")]
        if words:
            chosen[setting] = words
    began = time.monotonic()
    union = [word for word in runner.words if any(word in words for words in chosen.values())]
    suite.results[STOCK] = _stock(session, runner, name, union)
    suite.print_setting(STOCK)
    for setting, words in chosen.items():
        suite.results[setting.name] = _in_setting(runner, session, setting, words, suite)
        suite.print_setting(setting.name)
        if suite.interrupted:
            break
    suite.seconds = time.monotonic() - began
    for setting_name, test, expected, result in suite.differences():
        print(f"FAILED  {setting_name}: {test}: {result}, on the installed JDK {expected}")
    suite.print_counts()
    return suite


def run(session: Session) -> Suite:
    """Tests in which TLABs and walks of the heap matter."""
    return _run(session, "jtreg", _OFF_AND_FIVE)


def run_tier1(session: Session) -> Suite:
    """HotSpot's first tier of the collectors."""
    return _run(session, "tier1", _OFF_AND_FIVE)


def run_areas(session: Session) -> Suite:
    """What creates objects in ways of its own, in all associations."""
    return _run(session, "areas", AREAS)


def run_of_queue(session: Session) -> Suite:
    """The queue's own tests, with the flags that they bring, which the installed JDK has not."""
    suite = Suite("hab", session.level)
    runner = Runner(session, "hab")
    began = time.monotonic()
    found = runner.run(session.image, (), [word for word in runner.words if session.wants(word)])
    suite.seconds = time.monotonic() - began
    suite.results[STOCK] = dict.fromkeys(found, PASSED)
    suite.results["on"] = found
    if suite.differences():
        _keep_log(runner, "hab")
    for _, test, _, result in suite.differences():
        print(f"FAILED  {test}: {result}")
    suite.print_counts()
    return suite
