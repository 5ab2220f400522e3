# SPDX-License-Identifier: MIT OR Apache-2.0
"""`terrace jdk test`: what differs is told, whatever suite finds it; the page is what was found."""

import json

import pytest

from terrace.jdk import command as jdk
from terrace.jdk import apps as jdk_apps
from terrace.jdk import gtest as jdk_gtest
from terrace.jdk import jtreg as jdk_jtreg
from terrace.jdk import jtreg_runner
from terrace.jdk import page as jdk_page
from terrace.jdk import session as jdk_session
from terrace.jdk import stress as jdk_stress
from terrace.jdk import programs as jdk_test
from terrace.checkout import Checkout
from terrace.errors import TerraceError
from terrace.jdk.session import FAILED, HAB, NOT_RUN, PASSED, STOCK, Session, Setting, Suite

FLAGS = (
    "UseHierarchicalAllocBuffers HABLevels HABCoreSize HABMaxEdenPercent HABAssociation "
    "HABUseRestartableSequences ResizeTLAB TLABSize UseTLAB ZeroTLAB ObjectAlignmentInBytes "
    "UnlockExperimentalVMOptions UnlockDiagnosticVMOptions VerifyBeforeGC VerifyAfterGC "
    "UseCompactObjectHeaders UseNUMA UseLargePages UseTransparentHugePages"
)
JAVA = """#!/bin/sh
case "$*" in *PrintFlagsFinal*) for f in %s; do echo "bool $f = true {product}"; done; exit;; esac
case "$*" in *UseHierarchicalAllocBuffers*) %s;; esac
echo 42
"""


def put_java(directory, with_buffers=":", flags=FLAGS):
    (directory / "bin").mkdir(parents=True)
    java = directory / "bin" / "java"
    java.write_text(JAVA % (flags, with_buffers))
    java.chmod(0o755)
    return directory


@pytest.fixture
def session(tmp_path, monkeypatch):
    """Makes one of which the patched java does `with_buffers` where it has the buffers' flag."""
    monkeypatch.setenv("TERRACE_JDK_DIR", str(tmp_path / "jdk"))

    def make(with_buffers=":", flags=FLAGS, **options):
        stock, image = (
            put_java(tmp_path / "stock"),
            put_java(tmp_path / "image", with_buffers, flags),
        )
        return Session(Checkout(tmp_path), stock, image, **options)

    return make


# Programs.


def run_programs(session, monkeypatch):
    monkeypatch.setattr(jdk_test, "programs", lambda *_: [jdk_test.Program("program", ("Main",))])
    return jdk_test.run(session)


def test_the_same_results_pass(session, monkeypatch, capsys):
    suite = run_programs(session(), monkeypatch)
    assert suite.status == 0
    runs = len(jdk_test.SETTINGS) * len(jdk_test.COLLECTORS)
    assert f"{runs} passed, 0 unlike" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("with_buffers", "told"),
    [("echo 41; exit 0", "another result"), ("echo broken heap; exit 134", "exit status 134")],
)
def test_another_result_and_a_crash_fail(session, monkeypatch, capsys, with_buffers, told):
    suite = run_programs(session(with_buffers), monkeypatch)
    assert suite.status == 1
    off = sum(setting.patched == () for setting in jdk_test.SETTINGS)
    out = capsys.readouterr().out
    assert f"{len(jdk_test.COLLECTORS) * off} passed" in out  # those without the buffers
    assert told in out


def test_a_program_that_fails_on_the_installed_jdk_is_no_pass(session, monkeypatch, capsys):
    made = session()
    (made.stock / "bin" / "java").write_text("#!/bin/sh\nexit 3\n")
    assert run_programs(made, monkeypatch).status == 1
    assert "the installed JVM failed: exit status 3" in capsys.readouterr().out


def test_nothing_that_ran_is_no_pass(session, monkeypatch):
    assert run_programs(session(patterns=("no such program",)), monkeypatch).status == 1


def test_files_are_part_of_a_result(tmp_path):
    output = tmp_path / "out"
    image = put_java(tmp_path / "image", f"echo $$ > {output}/x")  # another one in each run
    program = jdk_test.Program("program", (), output)
    assert jdk_test.run_once(image, HAB, program) != jdk_test.run_once(image, HAB, program)
    assert jdk_test.run_once(image, (), program) == jdk_test.run_once(image, (), program)


# Settings that a JDK does not know.


def test_a_setting_is_left_out_with_a_line_that_says_why(session, capsys):
    made = session(flags=FLAGS.replace("HABAssociation", ""))
    suite = Suite("some", "release")
    kept = jdk_session.usable(jdk_session.FIVE, made.image, suite)
    assert [s.name for s in kept] == [s.name for s in jdk_session.FIVE[:3]]
    line = "by core: left out, the JDK does not know HABAssociation"
    assert line in suite.notes
    assert line in capsys.readouterr().err
    assert len(suite.notes) == 2


def test_all_five_settings_are_kept_where_their_flags_are_known(session):
    suite = Suite("some", "release")
    assert len(jdk_session.usable(jdk_session.FIVE, session().image, suite)) == 5
    assert suite.notes == []


def test_a_jdk_that_does_not_start_is_told(tmp_path):
    with pytest.raises(TerraceError, match="bin/java"):
        jdk_session.known_flags(tmp_path)


# Suites.


@pytest.mark.parametrize(
    ("stock", "found", "status"),
    [
        ({"a": PASSED}, {"a": PASSED}, 0),
        ({"a": PASSED, "b": FAILED}, {"a": PASSED, "b": FAILED}, 0),
        ({"a": PASSED, "b": PASSED}, {"a": PASSED}, 0),  # not selected
        ({"a": PASSED}, {"a": PASSED, "b": PASSED}, 0),  # selected on the patched JDK alone
        ({"a": PASSED}, {"a": PASSED, "b": FAILED}, 1),
        ({"a": PASSED, "b": PASSED}, {"a": PASSED, "b": FAILED}, 1),
        ({"a": PASSED, "b": FAILED}, {"a": PASSED, "b": PASSED}, 1),
        ({"a": PASSED}, {"a": NOT_RUN}, 1),
        ({"a": FAILED}, {"a": FAILED}, 1),
    ],
)
def test_a_suite_is_good_if_tests_ran_and_ended_as_on_the_installed_jdk(stock, found, status):
    assert Suite("some", "release", {STOCK: stock, "on": found}).status == status


# Applications.


def test_jars_are_checked(tmp_path):
    (tmp_path / "good.jar").write_bytes(b"")
    (tmp_path / "bad.jar").write_bytes(b"x")
    empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    listing = f"# a comment\n{empty}  good.jar\n{empty}  bad.jar\n{empty}  missing.jar\n"
    assert jdk_apps.wrong_jars(tmp_path, listing) == ["bad.jar", "missing.jar"]


# jtreg.

SUMMARY = """gc/g1/TestA.java  Passed. Execution successful
gc/g1/TestB.java#id0  Failed. Execution failed: exit code 1
gc/TestC.java  Error. Program `javac' timed out
"""


def test_a_summary_of_jtreg_is_read():
    assert jtreg_runner.parse_summary(SUMMARY) == {
        "gc/g1/TestA.java": PASSED,
        "gc/g1/TestB.java#id0": FAILED,
        "gc/TestC.java": "error",
    }


class FakeRunner:
    """Results by JDK and words, one after the other."""

    words = ("all",)

    def __init__(self, answers, directory):
        self.answers, self.directory = answers, directory

    def run(self, jdk, flags, words):
        (self.directory / "out").mkdir(parents=True, exist_ok=True)
        return self.answers(jdk.name, flags, words)

    def line(self, word):
        return word

    def path(self, test):
        return test


def run_jtreg(session, monkeypatch, answers):
    monkeypatch.setattr(
        jdk_jtreg, "Runner", lambda s, _: FakeRunner(answers, s.directory / "jtreg")
    )
    return jdk_jtreg.run(session)


def test_a_test_that_fails_again_with_the_buffers_alone_is_told(session, monkeypatch, capsys):
    def answers(_jdk, flags, _words):
        return {"A": FAILED if "-XX:HABAssociation=flip" in flags else PASSED, "B": PASSED}

    suite = run_jtreg(session(), monkeypatch, answers)
    assert suite.status == 1
    assert suite.differences() == [("flip", "A", PASSED, FAILED)]
    assert "FAILED  flip: A: failed, on the installed JDK passed" in capsys.readouterr().out


def test_a_test_that_passes_the_second_time_is_a_note(session, monkeypatch):
    def answers(jdk_name, flags, words):
        broken = jdk_name == "image" and not flags and words == ["all"]
        return {"A": FAILED if broken else PASSED}

    suite = run_jtreg(session(), monkeypatch, answers)
    assert suite.status == 0
    assert suite.notes == ["off: A: failed, then passed"]


def test_a_test_that_an_ordinary_flag_breaks_is_a_note(session, monkeypatch):
    def answers(_jdk, flags, _words):
        return {"A": FAILED if "-XX:TLABSize=4k" in flags else PASSED}

    suite = run_jtreg(session(), monkeypatch, answers)
    assert suite.status == 0
    (note,) = suite.notes
    assert "A: failed; installed JDK, too, -XX:-ResizeTLAB -XX:TLABSize=4k" in note


def test_the_tests_of_the_queue_run_on_the_patched_jdk_alone(session, monkeypatch, capsys):
    asked = []

    def answers(jdk_name, flags, _words):
        asked.append((jdk_name, flags))
        return {"A": PASSED, "B": FAILED}

    monkeypatch.setattr(
        jdk_jtreg, "Runner", lambda s, _: FakeRunner(answers, s.directory / "jtreg")
    )
    suite = jdk_jtreg.run_of_queue(session())
    assert asked == [("image", ())]
    assert suite.differences() == [("on", "B", PASSED, FAILED)]
    assert "FAILED  B: failed" in capsys.readouterr().out


def test_the_tests_of_the_queue_are_those_that_it_has_now(tmp_path):
    tests = tmp_path / "source/test"
    earlier = tests / "hotspot/jtreg/gc/hab/TestEarlier.java"
    earlier.parent.mkdir(parents=True)
    earlier.touch()
    patches = tmp_path / "integrations/hotspot/patches"
    patches.mkdir(parents=True)
    (patches / "01-code.diff").write_text("--- /dev/null\n+++ b/src/a.cpp\n@@ -0,0 +1 @@\n+a\n")
    name = "test/hotspot/jtreg/gc/hab/TestNow.java"
    (patches / "02-tests.diff").write_text(f"--- /dev/null\n+++ b/{name}\n@@ -0,0 +1 @@\n+now\n")
    for _ in range(2):
        jtreg_runner.add_tests_of_queue(Checkout(tmp_path), tests)
        assert [p.name for p in earlier.parent.iterdir()] == ["TestNow.java"]
    assert not (tests.parent / "src").exists()


def test_a_list_has_words_and_what_is_left_out(tmp_path):
    (tmp_path / "integrations/hotspot").mkdir(parents=True)
    (tmp_path / "test/gc").mkdir(parents=True)
    for name in ("B.java", "A.java", "README"):
        (tmp_path / "test/gc" / name).touch()
    text = "# a comment\n\ngc/g1\n-gc/g1/TestLong.java#id0\nhotspot/jtreg:group\ngc/*.java\n"
    (tmp_path / "integrations/hotspot/some.txt").write_text(text)
    words, left_out = jtreg_runner.test_list(Checkout(tmp_path), "some", tmp_path / "test")
    expected = ("gc/g1", "hotspot/jtreg:group", "gc/A.java", "gc/B.java")
    assert words == [f"{tmp_path}/test/{name}" for name in expected]
    assert left_out == ["gc/g1/TestLong.java#id0"]


def test_long_tests_are_made_shorter_and_a_source_that_has_changed_is_told(tmp_path):
    for name, text, _ in jtreg_runner._SHORTER:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"@run main{text}more")
    jtreg_runner.shorten(tmp_path)
    for name, _, shorter in jtreg_runner._SHORTER:
        assert (tmp_path / name).read_text() == f"@run main{shorter}more"
    with pytest.raises(TerraceError, match="has no single '120000'"):
        jtreg_runner.shorten(tmp_path)


# gtest.


def test_a_report_of_googletest_is_read():
    tests = [
        {"name": "good", "status": "RUN", "result": "COMPLETED"},
        {"name": "bad", "status": "RUN", "result": "COMPLETED", "failures": [{}]},
        {"name": "skipped", "status": "RUN", "result": "SKIPPED"},
        {"name": "other", "status": "NOTRUN"},
    ]
    text = json.dumps({"testsuites": [{"name": "S", "testsuite": tests}]})
    assert jdk_gtest.parse_report(text) == {
        "S.good": PASSED,
        "S.bad": FAILED,
        "S.skipped": NOT_RUN,
        "S.other": NOT_RUN,
    }


LAUNCHER = """#!/bin/sh
case "$*" in *HABAssociation=core*) exit 134;; esac
for word; do case $word in --gtest_output=json:*) report=${word#--gtest_output=json:};; esac; done
echo '{"testsuites": [{"name": "S", "testsuite": [' > $report
echo '{"name": "t", "status": "RUN", "result": "COMPLETED"}]}]}' >> $report
"""


def test_unit_tests_that_end_without_a_report_fail(session):
    made = session(level="fastdebug")
    with pytest.raises(TerraceError, match="jdk build --fastdebug"):
        jdk_gtest.run(made)
    program = (
        made.directory.parent / "build-fastdebug/hotspot/variant-server/libjvm/gtest/gtestLauncher"
    )
    program.parent.mkdir(parents=True)
    program.write_text(LAUNCHER)
    program.chmod(0o755)
    suite = jdk_gtest.run(made)
    assert suite.status == 1
    assert [d[0] for d in suite.differences()] == ["by core"]


# The stress.


@pytest.mark.parametrize(("with_buffers", "status"), [(":", 0), ("exit 1", 1)])
def test_the_stress_ends_after_its_time(session, monkeypatch, tmp_path, with_buffers, status):
    monkeypatch.setattr(jdk_stress, "compile_programs", lambda *_: tmp_path)
    suite = jdk_stress.run(session(with_buffers, seconds=0))
    assert suite.status == status
    assert suite.notes[0].startswith("1 runs")


def test_the_stress_takes_turns():
    settings = [Setting("one"), Setting("two")]
    assert [(c, s.name) for c, s in jdk_stress.turns(settings)] == [
        ("Parallel", "one"),
        ("G1", "one"),
        ("Serial", "one"),
        ("Parallel", "two"),
        ("G1", "two"),
        ("Serial", "two"),
    ]


# The page.


def test_the_page_has_what_was_found(session):
    made = session()
    for path in ("docs/guide", "integrations/hotspot"):
        (made.checkout.root / path).mkdir(parents=True)
    results = {
        STOCK: {"A": PASSED, "B": FAILED},
        "on": {"A": FAILED, "B": FAILED},
        "flip": {"A": PASSED},
    }
    path = made.checkout.root / "docs/guide/jdk-tests.md"
    path.write_text("By hand.\n\n## jtreg\n\nAbout it.\n\nNot run.\n\n## apps\n\nNot run.\n")
    jdk_page.record(made, Suite("jtreg", "release", results, ["a note"], 600))
    jdk_page.record(made, Suite("stress", "fastdebug", {STOCK: {"C": PASSED}, "on": {"C": PASSED}}))
    page = path.read_text()
    assert page.startswith("By hand.\n\n## programs\n\nNot run.")
    assert "## jtreg\n\nAbout it.\n\n2 tests in 3 settings" in page
    assert "| stock | 1 | 1 | 0 | 0 |  |" in page
    assert "| on | 0 | 2 | 0 | 0 | 1 |" in page
    assert "| flip | 1 | 0 | 0 | 1 | 0 |" in page
    assert "| `A` | passed: stock, flip; failed: on |" in page
    assert "- a note" in page
    assert "| `B` | failed: stock, on |" in page
    assert "Tests: 2 did not pass somewhere." in page
    assert "Tests: 1 passed in every setting." in page
    assert "`C`" not in page
    assert "## apps\n\nNot run." in page


# The command.


@pytest.mark.parametrize(
    ("name", "level", "on", "status"),
    [("apps", "release", PASSED, 0), ("gtest", "fastdebug", FAILED, 1)],  # with assertions
)
def test_a_suite_is_run_on_the_jdks_named(session, monkeypatch, name, level, on, status):
    made = session()
    seen = []
    answer = Suite(name, level, {STOCK: {"A": PASSED}, "on": {"A": on}})
    monkeypatch.setitem(jdk.SUITES, name, lambda s: seen.append(s) or answer)
    request = jdk.Request(name, image=made.image, stock=made.stock, page=False)
    assert jdk.test(made.checkout, request) == status
    assert [(s.image, s.stock, s.level) for s in seen] == [(made.image, made.stock, level)]
