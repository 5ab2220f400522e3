# SPDX-License-Identifier: MIT OR Apache-2.0
"""docs/guide/jdk-tests.md, from integrations/hotspot/results.json: what the suites found.

The page's introduction, and the first paragraph on each suite, are written by hand, in the page.
"""

import json
import re
import time
from collections import Counter
from pathlib import Path
from typing import Any

from terrace.captured import run_captured
from terrace.checkout import Checkout
from terrace.jdk.session import ERROR, FAILED, NOT_RUN, PASSED, STOCK, Session, Suite, is_unlike
from terrace.jdk.source import integration
from terrace.messages import say

SUITES = (
    *("programs", "code", "apps", "jtreg", "tier1", "areas", "hab", "gtest", "agent", "watch"),
    *("stress", "fuzz"),
)
# A part of them that runs is put to what ran before, on the same level.
IN_PARTS = ("jtreg", "tier1", "areas", "fuzz")
BY_DIRECTORY = ("areas",)  # what ran is told of each directory, too
_GENERATED = re.compile(r"Not run\.|\d+ tests in ")


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


def commit(checkout: Checkout) -> str:
    command = ["git", "-C", str(checkout.root), "rev-parse", "--short", "HEAD"]
    done = run_captured(command)
    return done.stdout.strip() or "unknown"


def _is_part(session: Session, name: str, interrupted: bool = False) -> bool:
    return name in IN_PARTS and (bool(session.patterns) or session.first > 0 or interrupted)


def recorded(session: Session, name: str) -> dict[str, dict[str, str]]:
    """Setting -> test -> result of the runs that this one is put to; {} if it stands alone."""
    entry = _known(session).get(name) if _is_part(session, name) else None
    return _expanded(entry) if entry is not None and entry["level"] == session.level else {}


def _merged(before: dict[str, Any], now: dict[str, Any]) -> dict[str, Any]:
    """What ran now in the place of its earlier results; what did not stays, and its commits."""
    results, commits = _expanded(before), dict(before["commits"])
    for setting, found in _expanded(now).items():
        ran = {test: result for test, result in found.items() if result != NOT_RUN}
        earlier = results.get(setting, {})
        stays = any(result != NOT_RUN for test, result in earlier.items() if test not in ran)
        old = commits.get(setting, []) if stays else []
        new = now["commits"].get(setting, []) if ran else []
        commits[setting] = list(dict.fromkeys([*old, *new]))
        results[setting] = {**earlier, **ran}
    return {
        **now,
        "commits": commits,
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
        "commits": {name: [commit(session.checkout)] for name in suite.results if name != STOCK},
        "minutes": round(suite.seconds / 60),
        "settings": list(suite.results),
        "tests": _compressed(suite.results),
        "notes": suite.notes,
    }
    before = known.get(suite.name)
    if before is not None and _is_part(session, suite.name, suite.interrupted):
        if before["level"] != suite.level:
            say(f"{path}: not changed, it has results of a {before['level']} build", always=True)
            return
        entry = _merged(before, entry)
    known[suite.name] = entry
    path.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    page_path = session.checkout.root / "docs" / "guide" / "jdk-tests.md"
    before_now = page_path.read_text(encoding="utf-8") if page_path.exists() else ""
    page_path.write_text(page(known, before_now), encoding="utf-8")


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _counts(results: dict[str, dict[str, str]], commits: dict[str, list[str]]) -> list[str]:
    """A row for each setting, with its commits if there are any."""
    stock = results.get(STOCK, {})
    lines = [
        _row(["setting", "passed", "failed", "error", "not run", "unlike stock"]),
        "|---|--:|--:|--:|--:|--:|",
    ]
    if commits:
        lines = [f"{lines[0]} commits |", f"{lines[1]}---|"]
    for name, found in results.items():
        counts = Counter(found.values())
        unlike = sum(is_unlike(stock.get(test, NOT_RUN), r) for test, r in found.items())
        cells = [str(counts[r]) for r in (PASSED, FAILED, ERROR, NOT_RUN)]
        of = [", ".join(commits.get(name, []))] if commits else []
        lines.append(_row([name, *cells, "" if name == STOCK else str(unlike), *of]))
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


def _directory(test: str) -> str:
    """The first two names of a test of HotSpot's, and three of one of the JDK's."""
    names = test.split("/")[:-1]
    return "/".join(names[: 3 if names[:1] == ["java"] else 2])


def _by_directory(results: dict[str, dict[str, str]]) -> list[str]:
    """How many tests of each directory each setting ran."""
    ran = {n: Counter(_directory(t) for t in rs if rs[t] != NOT_RUN) for n, rs in results.items()}
    lines = [
        "Tests that ran, by directory:",
        "",
        _row(["directory", *results]),
        f"|---{'|--:' * len(results)}|",
    ]
    for directory in sorted({_directory(test) for found in results.values() for test in found}):
        counts = (ran[name][directory] for name in results)
        lines.append(_row([directory, *(str(n) if n else "" for n in counts)]))
    return [*lines, ""]


def _section(name: str, entry: dict[str, Any] | None) -> list[str]:
    if entry is None:
        return ["Not run.", ""]
    tests, settings = len(entry["tests"]), len(entry["settings"])
    commits = {c for of_setting in entry["commits"].values() for c in of_setting}
    alike = f", commit {commits.pop()}" if len(commits) == 1 else ""
    about = (
        f"{tests} tests in {settings} settings, a {entry['level']} build, {entry['minutes']} "
        f"minutes, {entry['date']}{alike}."
    )
    notes = [f"- {note}" for note in entry["notes"]]
    return [
        *(about, "", *_counts(_expanded(entry), {} if alike else entry["commits"]), ""),
        *([*notes, ""] if notes else []),
        *(_by_directory(_expanded(entry)) if name in BY_DIRECTORY else []),
        *_others(entry),
    ]


def _by_hand(page: str) -> tuple[str, dict[str, str]]:
    """The introduction, and what is said of each suite."""
    introduction, *rest = re.split(r"^## (\w+)\n\n", page, flags=re.MULTILINE)
    first = {
        name: body.partition("\n\n")[0] for name, body in zip(rest[::2], rest[1::2], strict=True)
    }
    return introduction, {n: text for n, text in first.items() if not _GENERATED.match(text)}


def page(known: dict[str, Any], earlier: str) -> str:
    """In the order of the suites; one that has not run is said to be so."""
    introduction, about = _by_hand(earlier)
    lines: list[str] = []
    for name in SUITES:
        said = [about[name], ""] if name in about else []
        lines += [f"## {name}", "", *said, *_section(name, known.get(name))]
    return introduction + "\n".join(lines).rstrip("\n") + "\n"
