# SPDX-License-Identifier: MIT OR Apache-2.0
"""Reading what suites print, and what is said of a made-up suite that passes, or fails under an allocator only."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench" / name) for name in ("suites", "common")]

import results
import suites
from suites import Suite


def test_tap_is_read():
    text = """1..5
ok 1 - first
not ok 2 - second
# a remark
ok 3 # skip no perl
not ok 4 - fourth # TODO known breakage
ok 5 - first
"""
    assert results.of_tap(text) == {
        "first": "passed", "second": "failed", "3": "skipped", "fourth": "skipped", "first (2)": "passed",
    }  # fmt: skip


def test_what_is_random_in_names_and_counts_is_no_difference():
    one = {f"{'QX' * 15}: stored 4711": "passed", "opaque": "passed", "opaque (2)": "failed", "a": "skipped"}
    other = {f"{'ZY' * 20}: stored 815": "passed", "opaque": "failed", "opaque (2)": "passed", "opaque (3)": "passed", "a": "skipped"}
    assert results.by_name(one) == results.by_name(other) == {"TEXT: stored N": "passed", "opaque": "failed", "a": "skipped"}
    assert results.by_name({"a": "skipped", "a (2)": "passed"}) == {"a": "passed"}


def test_junit_is_read():
    text = """<testsuites><testsuite><testcase name="a"/><testcase name="b"><failure/></testcase>
    <testcase name="c"><error/></testcase><testcase name="d"><skipped/></testcase></testsuite></testsuites>"""
    assert results.of_junit(text) == {"a": "passed", "b": "failed", "c": "failed", "d": "skipped"}


def test_redis_is_read_without_what_differs_from_run_to_run():
    text = "\x1b[32m[ok]\x1b[0m: SET works (12 ms)\n[err]: GET of 123456 in tests/unit/a.tcl\n[ignore]: slow\nother\n"
    assert results.of_redis(text) == {"SET works": "passed", "GET of N": "failed", "slow": "skipped"}


def test_pg_regress_is_read():
    text = "test tablespace   ... ok   10 ms\nparallel group (2 tests):  a b\n     boolean   ... ok  5 ms\n     char  ... FAILED  4 ms\n"
    assert results.of_pg_regress(text) == {"tablespace": "passed", "boolean": "passed", "char": "failed"}


def test_sqlite_is_read():
    text = "select1-1.1... Ok\nselect1-1.2...\n! select1-1.2 expected: [1]\n! select1-1.2 got:      [2]\nselect1-1.3... Ok\n"
    assert results.of_sqlite(text) == {"select1-1.1": "passed", "select1-1.2": "failed", "select1-1.3": "passed"}


def test_sources_are_those_of_the_installed_version(monkeypatch):
    answers = {"dpkg": "2.36-9+deb12u14", "nosuch": ""}
    made = lambda command, **_: subprocess.CompletedProcess(command, 0, stdout=answers[command[-1]])  # noqa: E731
    monkeypatch.setattr(suites.subprocess, "run", made)
    assert suites.source_of("dpkg") == "dpkg=2.36-9+deb12u14"
    assert suites.source_of("nosuch") == "nosuch"


def test_what_differs_is_named_with_both_results():
    comparison = results.compare({"a": "passed", "b": "failed", "c": "passed"}, {"a": "passed", "b": "failed", "d": "passed"})
    assert not comparison.same
    assert comparison.different == [("c", "passed", "absent"), ("d", "absent", "passed")]
    assert comparison.counts == {"passed": 2, "failed": 1}


def test_a_failure_on_both_is_the_same_and_nothing_at_all_is_not():
    assert results.compare({"a": "failed"}, {"a": "failed"}).same
    assert not results.compare({}, {}).same


def made_up(script: str) -> Suite:
    """A suite that is one line of shell, and prints TAP."""
    return Suite(
        "made-up", lambda scratch: scratch, lambda folder, environment: results.of_tap(suites.said(["sh", "-c", script], folder, environment))
    )


@pytest.fixture
def library(tmp_path) -> Path:
    """An object that makes no difference, except for its name in the environment."""
    source = tmp_path / "nothing.c"
    source.write_text("int nothing;\n")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", tmp_path / "libmine.so", source], check=True)
    return tmp_path / "libmine.so"


def said_by(script: str, library: Path, tmp_path: Path, monkeypatch, capsys) -> tuple[int, str]:
    monkeypatch.setattr(suites, "SUITES", (made_up(script),))
    status = suites.main(["--library", str(library), "--scratch", str(tmp_path)])
    return status, capsys.readouterr().out


def test_a_suite_with_the_same_results_passes(library, tmp_path, monkeypatch, capsys):
    status, out = said_by("echo ok 1 - a; echo not ok 2 - b", library, tmp_path, monkeypatch, capsys)
    assert (status, out) == (0, "made-up    1 passed, 1 failed, 0 skipped; the same on Terrace\n")


def test_a_test_that_fails_under_the_allocator_only_is_told(library, tmp_path, monkeypatch, capsys):
    script = 'case $LD_PRELOAD in *libmine*) echo not ok 1 - a ;; *) echo ok 1 - a ;; esac'
    status, out = said_by(script, library, tmp_path, monkeypatch, capsys)
    assert status == 1
    assert "1 DIFFERENT on Terrace\n  a: passed on glibc, failed on Terrace\n" in out


def test_a_suite_that_runs_nothing_does_not_pass(library, tmp_path, monkeypatch, capsys):
    status, out = said_by("true", library, tmp_path, monkeypatch, capsys)
    assert status == 1
    assert "NOTHING RAN" in out


def test_a_suite_that_can_not_be_run_is_no_failure_but_is_told(library, tmp_path, monkeypatch, capsys):
    def unavailable(_scratch: Path) -> Path:
        raise suites.Unavailable("needs this and that")

    monkeypatch.setattr(suites, "SUITES", (Suite("made-up", unavailable, lambda _folder, _environment: {}),))
    assert suites.main(["--library", str(library), "--scratch", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "made-up    not run: needs this and that\n"


def test_an_unknown_suite_is_refused(capsys):
    with pytest.raises(SystemExit):
        suites.main(["nosuch"])
    assert "there is no suite nosuch; there are: python redis memcached git postgresql sqlite" in capsys.readouterr().err


def test_glibc_is_behind_the_allocator_where_a_program_has_another_one():
    suite = Suite("x", lambda scratch: scratch, lambda _folder, _environment: {}, after="libc.so.6")
    assert suites.environment_for(suite, Path("/t.so"))["LD_PRELOAD"] == "/t.so:libc.so.6"
    assert suites.environment_for(suite, None)["LD_PRELOAD"] == "libc.so.6"
    assert "LD_PRELOAD" not in suites.environment_for(made_up(""), None)
