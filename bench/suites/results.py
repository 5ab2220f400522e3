# SPDX-License-Identifier: MIT OR Apache-2.0
"""What test suites print, as test -> result; and what differs between two runs."""

import re
import xml.etree.ElementTree as ET
from collections import Counter
from dataclasses import dataclass

Results = dict[str, str]  # test -> "passed", "failed" or "skipped"


def _numbered(found: list[tuple[str, str]]) -> Results:
    """Two tests of one name are two tests."""
    seen: Counter[str] = Counter()
    results: Results = {}
    for name, result in found:
        seen[name] += 1
        results[name if seen[name] == 1 else f"{name} ({seen[name]})"] = result
    return results


def of_tap(text: str) -> Results:
    """The Test Anything Protocol: "ok 1 - what", "not ok 2 - what # TODO why"; what has no name has its number."""
    found = []
    for line in text.splitlines():
        match = re.match(r"(not )?ok (\d+)(?: -)? ?(.*)$", line.rstrip("\r"))
        if match:
            name, _, remark = f" {match.group(3)}".partition(" # ")
            skipped = remark.lower().startswith("skip")
            known = remark.lower().startswith("todo")
            result = "skipped" if skipped or known else "failed" if match.group(1) else "passed"
            found.append((name.strip() or match.group(2), result))
    return _numbered(found)


def by_name(results: Results) -> Results:
    """For suites that test with random data, and as often as time allows: without what is random in names, and of all tests of one
    name a single result, the worst."""
    worst: Results = {}
    for name, result in results.items():
        plain = re.sub(r"[A-Z]{20,}", "TEXT", re.sub(r" \(\d+\)$", "", name))
        plain = re.sub(r"\d{3,}", "N", plain)
        worst[plain] = max(worst.get(plain, result), result, key=("skipped", "passed", "failed").index)
    return worst


def of_junit(text: str) -> Results:
    """Python's regrtest writes it."""
    found = []
    for case in ET.fromstring(text).iter("testcase"):
        bad = case.find("failure") is not None or case.find("error") is not None
        result = "skipped" if case.find("skipped") is not None else "failed" if bad else "passed"
        found.append((case.get("name", "?"), result))
    return _numbered(found)


def of_redis(text: str) -> Results:
    """"[ok]: what (12 ms)", also in colours; [err] and [exception] end with why."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", text)
    kinds = {"ok": "passed", "err": "failed", "exception": "failed", "skip": "skipped", "ignore": "skipped"}
    found = []
    for kind, words in re.findall(r"^\[(ok|err|exception|skip|ignore)\]: (.*)$", plain, re.M):
        name = re.sub(r" \(\d+ ms\)$| in tests/\S+$", "", words)
        # Some names hold a random number, a time or an address.
        found.append((re.sub(r"\d{4,}|0x[0-9a-f]+", "N", name), kinds[kind]))
    return _numbered(found)


def of_pg_regress(text: str) -> Results:
    """"test boolean ... ok 33 ms", "     int2 ... FAILED 12 ms"."""
    found = re.findall(r"^(?:test)? +(\S+) +\.\.\. (ok|FAILED|failed \(ignored\))", text, re.M)
    return _numbered([(name, "passed" if word == "ok" else "failed") for name, word in found])


def of_sqlite(text: str) -> Results:
    """"select1-1.1... Ok"; of one that fails "! select1-1.2 expected: [what]" follows."""
    found = re.findall(r"^(?:(\S+)\.\.\. Ok|! (\S+) expected: )", text, re.M)
    return _numbered([(good or bad, "passed" if good else "failed") for good, bad in found])


@dataclass(frozen=True)
class Comparison:
    """How many tests ended how on glibc, and which ended otherwise on Terrace: test, on glibc, on Terrace."""

    counts: dict[str, int]
    different: list[tuple[str, str, str]]

    @property
    def same(self) -> bool:
        return bool(self.counts) and not self.different


def compare(plain: Results, preloaded: Results) -> Comparison:
    absent = "absent"
    names = [*plain, *(name for name in preloaded if name not in plain)]
    pairs = [(name, plain.get(name, absent), preloaded.get(name, absent)) for name in names]
    return Comparison(dict(Counter(plain.values())), [p for p in pairs if p[1] != p[2]])
