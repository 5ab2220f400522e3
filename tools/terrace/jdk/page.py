# SPDX-License-Identifier: MIT OR Apache-2.0
"""docs/guide/jdk-tests.md, from integrations/hotspot/results.json: what the suites found."""

from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

from terrace.captured import run_captured
from terrace.checkout import Checkout
from terrace.jdk.session import ERROR, FAILED, NOT_RUN, PASSED, STOCK, Session, Suite
from terrace.jdk.source import integration
from terrace.messages import say

SUITES = (
    *("programs", "apps", "jtreg", "tier1", "areas", "hab", "gtest", "agent", "watch"),
    *("stress", "fuzz"),
)
# A part of them that runs is put to what ran before, on the same level.
IN_PARTS = ("areas", "fuzz")
_ABOUT = {
    "programs": "Programs that compute what does not depend on the JVM; each output, and each\n"
    "file, is compared. HotSpot turns `UseNUMA` off where there is one node, and `UseLargePages`\n"
    "where no huge page is reserved, as on the machine of these results\n"
    "([by hand](../../integrations/hotspot/README.md#tests): two pretended nodes).",
    "apps": "Lucene indexes and searches, H2 processes orders after TPC-C, Scala's compiler\n"
    "compiles a library: the same output and the same class files.",
    "jtreg": "HotSpot's regression tests of\n"
    "[jtreg.txt](../../integrations/hotspot/jtreg.txt). A test that takes no flags from outside\n"
    '(`vm.flagless`), or is for a collector that is not compiled, is "not run" there. One that\n'
    "ends otherwise than on the installed JDK runs once more on both, and a note tells of it.\n"
    "TestRevPtrsForInvokeDynamic fails on the installed JDK: the agent's search for references\n"
    "meets a constant pool that it takes to be corrupt.",
    "tier1": "HotSpot's first tier of tests of the collectors\n"
    "([tier1.txt](../../integrations/hotspot/tier1.txt)), in the same way. TestObjectGraphAfterGC\n"
    "fails on the installed JDK: a collection that it asks for is a mixed one, which it takes to\n"
    "be a fault.",
    "areas": "HotSpot's and the JDK's tests of what creates objects in ways of its own\n"
    "([areas.txt](../../integrations/hotspot/areas.txt)), in the same way.",
    "hab": "The queue's own tests, `test/hotspot/jtreg/gc/hab` in the patched source, with the\n"
    "flags that they bring. The installed JDK does not know these: its row is what has to be.",
    "gtest": "HotSpot's unit tests, linked with a patched libjvm with assertions. The installed\n"
    "JDK has none: `stock` is that library with all flags off. The three tests\n"
    "`decoder_get_source_info_valid` read debug information, which this library does not have.",
    "agent": "`jhsdb` walks the heap of a process, and of a core file of it: as many objects of\n"
    "each class as the program says that it keeps.",
    "watch": "What `jcmd GC.hab_info`, the counters and the event of JFR tell of a running\n"
    "program.",
    "stress": "1,000 threads allocate, keep and check objects, with assertions,\n"
    "`VerifyBeforeGC` and `VerifyAfterGC`.",
    "fuzz": "Programs made from seeds\n"
    "([Ways](../../integrations/hotspot/programs/Ways.java)) that allocate in\n"
    "every way there is, of classes that are used for the first time before and after the code\n"
    "was compiled. Each test is a choice of flags, of several programs.",
}
_INTRODUCTION = """# The patched HotSpot under tests

The same tests on an installed JDK and on the one with the patches of
[integrations/hotspot](../../integrations/hotspot/README.md), with the buffers in five settings and
more. `./terrace jdk test` runs all of it, `--suite NAME` a part, and writes this page.

The page names the tests that failed, or ended in an error, in some setting. The result of each
test in each setting is in [results.json](../../integrations/hotspot/results.json).

"Unlike stock" counts the tests that ended otherwise than on the installed JDK: 0 is what has to be
there.

"""


def _compressed(results: dict[str, dict[str, str]]) -> dict[str, Any]:
    """Test -> its result where it is one in all settings, else one of each setting."""
    tests = sorted({test for found in results.values() for test in found})
    compressed: dict[str, Any] = {}
    for test in tests:
        by_setting = {name: found.get(test, NOT_RUN) for name, found in results.items()}
        same = len(set(by_setting.values())) == 1
        compressed[test] = next(iter(by_setting.values())) if same else by_setting
    return compressed


def _expanded(entry: dict[str, Any]) -> dict[str, dict[str, str]]:
    """Setting -> test -> result."""
    results: dict[str, dict[str, str]] = {name: {} for name in entry["settings"]}
    for test, result in entry["tests"].items():
        for name in results:
            results[name][test] = result if isinstance(result, str) else result[name]
    return results


def _commit(checkout: Checkout) -> str:
    command = ["git", "-C", str(checkout.root), "rev-parse", "--short", "HEAD"]
    done = run_captured(command)
    return done.stdout.strip() or "unknown"


def _is_part(session: Session, name: str) -> bool:
    return name in IN_PARTS and (bool(session.patterns) or session.first > 0)


def recorded(session: Session, name: str) -> dict[str, dict[str, str]]:
    """Setting -> test -> result of the runs that this one is put to; {} if it stands alone."""
    entry = _known(session).get(name) if _is_part(session, name) else None
    return _expanded(entry) if entry is not None and entry["level"] == session.level else {}


def _merged(before: dict[str, Any], now: dict[str, Any]) -> dict[str, Any]:
    """What ran now in the place of its earlier results; what did not stays."""
    results = _expanded(before)
    for setting, found in _expanded(now).items():
        ran = {test: result for test, result in found.items() if result != NOT_RUN}
        results[setting] = {**results.get(setting, {}), **ran}
    commits = before["commit"].split(", ")
    return {
        **now,
        "commit": ", ".join([*commits, *({now["commit"]} - set(commits))]),
        "minutes": before["minutes"] + now["minutes"],
        "settings": list(results),
        "tests": _compressed(results),
        "notes": [*before["notes"], *(n for n in now["notes"] if n not in before["notes"])],
    }


def _path(session: Session) -> Path:
    return integration(session.checkout) / "results.json"


def _known(session: Session) -> dict[str, Any]:
    path = _path(session)
    known: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return known


def record(session: Session, suite: Suite) -> None:
    """Puts a suite's results in the place of its earlier ones, and writes the page."""
    path, known = _path(session), _known(session)
    entry: dict[str, Any] = {
        "level": suite.level,
        "date": time.strftime("%Y-%m-%d"),
        "commit": _commit(session.checkout),
        "minutes": round(suite.seconds / 60),
        "settings": list(suite.results),
        "tests": _compressed(suite.results),
        "notes": suite.notes,
    }
    before = known.get(suite.name)
    if before is not None and _is_part(session, suite.name):
        if before["level"] != suite.level:
            say(f"{path}: not changed, it has results of a {before['level']} build", always=True)
            return
        entry = _merged(before, entry)
    known[suite.name] = entry
    path.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    page_path = session.checkout.root / "docs" / "guide" / "jdk-tests.md"
    page_path.write_text(page(known), encoding="utf-8")


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _counts(results: dict[str, dict[str, str]]) -> list[str]:
    """A row for each setting."""
    stock = results.get(STOCK, {})
    lines = [
        _row(["setting", "passed", "failed", "error", "not run", "unlike stock"]),
        "|---|--:|--:|--:|--:|--:|",
    ]
    for name, found in results.items():
        counts = Counter(found.values())
        unlike = sum(r not in (NOT_RUN, stock.get(test, NOT_RUN)) for test, r in found.items())
        cells = [str(counts[r]) for r in (PASSED, FAILED, ERROR, NOT_RUN)]
        lines.append(_row([name, *cells, "" if name == STOCK else str(unlike)]))
    return lines


def _by_word(entry: dict[str, Any], result: str | dict[str, str]) -> dict[str, list[str]]:
    """What a test gave -> the settings that gave it."""
    words: dict[str, list[str]] = {}
    for name in entry["settings"]:
        words.setdefault(result if isinstance(result, str) else result[name], []).append(name)
    return words


def _others(entry: dict[str, Any]) -> list[str]:
    """How many tests did nothing but pass, then a row for each of the others."""
    words = {test: _by_word(entry, result) for test, result in sorted(entry["tests"].items())}
    seen = Counter(frozenset(by_word) for by_word in words.values())
    others = {test: by_word for test, by_word in words.items() if {FAILED, ERROR} & by_word.keys()}
    counts = (
        (seen[frozenset({PASSED})], "passed in every setting"),
        (seen[frozenset({PASSED, NOT_RUN})], "passed in each setting that ran them"),
        (seen[frozenset({NOT_RUN})], "ran in no setting"),
        (len(others), "did not pass somewhere"),
    )
    lines = [f"Tests: {', '.join(f'{n} {what}' for n, what in counts if n)}.", ""]
    if not others:
        return lines
    lines += [_row(["test", "result"]), "|---|---|"]
    for test, by_word in others.items():
        result = "; ".join(
            word if len(names) == len(entry["settings"]) else f"{word}: {', '.join(names)}"
            for word, names in by_word.items()
            if word != NOT_RUN
        )
        lines.append(_row([f"`{test}`", result]))
    return [*lines, ""]


def _section(name: str, entry: dict[str, Any]) -> list[str]:
    tests, settings = len(entry["tests"]), len(entry["settings"])
    about = (
        f"{tests} tests in {settings} settings, a {entry['level']} build, {entry['minutes']} "
        f"minutes, {entry['date']}, commit{'s' * (',' in entry['commit'])} {entry['commit']}."
    )
    notes = [f"- {note}" for note in entry["notes"]]
    return [
        *(f"## {name}", "", _ABOUT[name], "", about, "", *_counts(_expanded(entry)), ""),
        *([*notes, ""] if notes else []),
        *_others(entry),
    ]


def page(known: dict[str, Any]) -> str:
    """In the order of the suites; one that has not run is said to be so."""
    lines: list[str] = []
    for name in SUITES:
        lines += (
            _section(name, known[name]) if name in known else [f"## {name}", "", "Not run.", ""]
        )
    return _INTRODUCTION + "\n".join(lines).rstrip("\n") + "\n"
