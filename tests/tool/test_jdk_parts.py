# SPDX-License-Identifier: MIT OR Apache-2.0
"""`terrace jdk test --filter`: a part of a suite runs; of some suites the page keeps the others."""

import dataclasses

import pytest
from test_jdk_suites import FLAGS, FakeRunner, run_jtreg, session

from terrace.jdk import command as jdk
from terrace.jdk import fuzz as jdk_fuzz
from terrace.jdk import jtreg as jdk_jtreg
from terrace.jdk import jtreg_runner
from terrace.jdk import page as jdk_page
from terrace.jdk.session import NOT_RUN, PASSED, STOCK, Suite

__all__ = ["session"]  # the fixture

FAST = "fastdebug"


@pytest.fixture
def made(session):
    """A session of one filter, in a checkout that has a page."""

    def make(pattern, **options):
        one = session(patterns=(pattern,), **options)
        for path in ("docs/guide", "integrations/hotspot"):
            (one.checkout.root / path).mkdir(parents=True, exist_ok=True)
        return one

    return make


@pytest.mark.parametrize(
    ("patterns", "settings"),
    [(("flip: gc/b",), ["flip"]), (("flip: gc/b", "off: gc/b"), ["off", "flip"])],
)
def test_filters_choose_among_tests_and_settings(session, monkeypatch, patterns, settings):
    asked = []

    def answers(jdk_name, _flags, words):
        asked.append((jdk_name, words))
        return {"A": PASSED}

    monkeypatch.setattr(FakeRunner, "words", ("gc/a", "gc/b"))
    suite = run_jtreg(session(patterns=patterns), monkeypatch, answers)
    assert asked == [(name, ["gc/b"]) for name in ("stock", *("image" for _ in settings))]
    assert list(suite.results) == [STOCK, *settings]
    assert suite.notes == []


# A run that is interrupted.

ENDED = """#Test Results (version 2)
#-----testdescription-----
id=id0

#-----testresult-----
execStatus={}
test=gc/TestA.java\\#id0

#section:main
test=gc/TestOther.java
"""


@pytest.mark.parametrize(
    ("status", "found"),
    [
        ("Passed. Execution successful", {"gc/TestA.java#id0": PASSED}),
        ("Failed. Execution failed\\: exit code 1", {"gc/TestA.java#id0": "failed"}),
        ("Not\\ run", {}),
    ],
)
def test_what_has_ended_is_read_from_the_files_of_the_tests(tmp_path, status, found):
    (tmp_path / "hotspot_jtreg/gc").mkdir(parents=True)
    (tmp_path / "hotspot_jtreg/gc/TestA_id0.jtr").write_text(ENDED.format(status))
    (tmp_path / "hotspot_jtreg/gc/TestB.jtr").write_text("#Test Results (version 2)\n")
    assert jtreg_runner.read_ended(tmp_path) == found


class Interrupted(FakeRunner):
    """In flip, when one of two tests has ended; or when it runs those once more that failed."""

    when = "flip"

    def run(self, jdk, flags, words):
        flip = jdk.name == "image" and "-XX:HABAssociation=flip" in flags
        if flip and (self.when == "flip" or words != ["all"]):
            raise KeyboardInterrupt
        (self.directory / "out").mkdir(parents=True, exist_ok=True)
        return {"A": "failed" if flip else PASSED, "B": PASSED}

    def ended(self):
        return {"A": PASSED}


@pytest.mark.parametrize(("when", "a"), [("flip", PASSED), ("again", "failed")])
def test_an_interrupted_run_keeps_what_has_ended(made, monkeypatch, when, a):
    monkeypatch.setattr(Interrupted, "when", when)
    monkeypatch.setattr(jdk_jtreg, "Runner", lambda s, _: Interrupted(None, s.directory / "jtreg"))
    one = made("")
    jdk_page.record(one, Suite("jtreg", "release", {STOCK: {"C": PASSED}, "on": {"C": PASSED}}))
    request = jdk.Request("jtreg", image=one.image, stock=one.stock)
    with pytest.raises(KeyboardInterrupt):
        jdk.test(one.checkout, request)
    found = jdk_page.recorded(one, "jtreg")
    assert {t: r for t, r in found["flip"].items() if r != NOT_RUN}.get("A") == a
    assert found["on"] == {"A": PASSED, "B": PASSED, "C": PASSED}


def test_an_interrupted_fuzzer_keeps_its_batches(session, tmp_path, monkeypatch):
    monkeypatch.setattr(jdk_fuzz, "compile_programs", lambda *_: tmp_path)
    ran = []

    def run_once(*_):
        ran.append(1)
        if len(ran) == 6:  # in the second batch
            raise KeyboardInterrupt
        return "42"

    monkeypatch.setattr(jdk_fuzz, "run_once", run_once)
    suite = jdk_fuzz.run(session())
    assert suite.interrupted
    assert suite.notes[0].startswith("by thread: 5 programs, from seed 0 on")


def page(session):
    return (session.checkout.root / "docs/guide/jdk-tests.md").read_text()


def test_a_part_is_put_to_what_ran_before(made):
    one = made("x")
    first = {STOCK: {"a/A": PASSED, "a/B": PASSED}, "on": {"a/A": "failed", "a/B": PASSED}}
    then = {STOCK: {"b/C": PASSED}, "on": {"a/A": PASSED, "a/B": NOT_RUN}, "flip": {"b/C": PASSED}}
    jdk_page.record(one, Suite("areas", "release", first, ["a note"], 600))
    jdk_page.record(one, Suite("areas", "release", then, ["another"], 60))
    text = page(one)
    assert "3 tests in 3 settings, a release build, 11 minutes" in text
    assert "| on | 2 | 0 | 0 | 1 | 0 |" in text
    assert "| flip | 1 | 0 | 0 | 2 | 0 |" in text
    assert "Tests: 3 passed in each setting that ran them." in text
    assert "- a note\n- another\n" in text
    assert "| directory | stock | on | flip |\n|---|--:|--:|--:|\n" in text
    assert "| a | 2 | 2 |  |\n| b | 1 |  | 1 |\n" in text
    assert jdk_page.recorded(one, "areas")["flip"]["b/C"] == PASSED
    assert jdk_page.recorded(one, "apps") == {}


@pytest.mark.parametrize(
    ("test", "directory"),
    [
        ("compiler/arraycopy/stress/A.java#id0", "compiler/arraycopy"),
        ("java/lang/invoke/lambda/A.java", "java/lang/invoke"),
        ("java/io/A.java", "java/io"),
    ],
)
def test_the_page_counts_by_directory(made, test, directory):
    one = made("x")
    results = {STOCK: {test: PASSED}, "on": {test: "failed"}}
    jdk_page.record(one, Suite("areas", "release", results))
    assert f"| {directory} | 1 | 1 |\n" in page(one)
    jdk_page.record(one, Suite("jtreg", "release", results))
    assert page(one).count("| directory |") == 1


def test_the_page_tells_the_commits_of_a_setting(made, monkeypatch):
    one = made("x")
    for commit, results in (
        ("aaa", {"on": {"A": PASSED, "B": PASSED}, "flip": {"A": PASSED}, "off": {"A": PASSED}}),
        ("bbb", {"on": {"A": PASSED, "B": NOT_RUN}, "flip": {"A": PASSED}, "off": {"A": NOT_RUN}}),
    ):
        monkeypatch.setattr(jdk_page, "commit", lambda _, name=commit: name)
        jdk_page.record(one, Suite("areas", "release", {STOCK: {"A": PASSED}, **results}))
        assert (", commit aaa." in page(one)) == (commit == "aaa")
    for row in (
        "on | 2 | 0 | 0 | 0 | 0 | aaa, bbb |",
        "flip | 1 | 0 | 0 | 1 | 0 | bbb |",
        "off | 1 | 0 | 0 | 1 | 0 | aaa |",
    ):
        assert f"| {row}\n" in page(one)


def test_results_of_two_builds_are_not_mixed(made, capsys):
    one = made("x")
    jdk_page.record(one, Suite("areas", "release", {STOCK: {"A": PASSED}}))
    before = page(one)
    jdk_page.record(one, Suite("areas", FAST, {STOCK: {"B": PASSED}}))
    assert page(one) == before
    assert "it has results of a release build" in capsys.readouterr().err


def test_the_installed_jdk_is_asked_for_what_is_not_recorded(made, monkeypatch):
    asked = []

    def answers(jdk_name, _flags, words):
        asked.append((jdk_name, tuple(words)))
        return {f"{word}/T": PASSED for word in words}

    monkeypatch.setattr(FakeRunner, "words", ("gc/a", "gc/ab", "gc/c"))
    monkeypatch.setattr(
        jdk_jtreg, "Runner", lambda s, _: FakeRunner(answers, s.directory / "jtreg")
    )
    flags = f"{FLAGS} UseG1GC"
    one = made("by core, G1: gc/ab", flags=flags)
    jdk_page.record(one, jdk_jtreg.run_areas(one))
    assert asked == [("stock", ("gc/ab",)), ("image", ("gc/ab",))]
    asked.clear()
    suite = jdk_jtreg.run_areas(dataclasses.replace(one, patterns=("flip, G1: gc/",)))
    assert asked == [("stock", ("gc/a", "gc/c")), ("image", ("gc/a", "gc/ab", "gc/c"))]
    assert suite.results[STOCK] == dict.fromkeys(("gc/a/T", "gc/ab/T", "gc/c/T"), PASSED)
    assert suite.status == 0


def test_a_filter_that_no_test_has_is_told_and_changes_no_page(made, monkeypatch, capsys):
    one = made("no such test")
    monkeypatch.setitem(jdk.SUITES, "jtreg", lambda _session: Suite("jtreg", "release", {STOCK: {}}))
    monkeypatch.setattr(jdk, "_session", lambda *_: one)
    assert jdk.test(one.checkout, jdk.Request("jtreg", patterns=one.patterns)) == 1
    assert "jtreg: nothing ran" in "".join(capsys.readouterr())
    assert not (one.checkout.root / "integrations/hotspot/results.json").exists()
