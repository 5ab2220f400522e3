# SPDX-License-Identifier: MIT OR Apache-2.0
"""`terrace test`: counting, and when it fails."""

import pytest
from terrace import testing
from terrace.checkout import Checkout
from terrace.errors import TerraceError
from terrace.testing import Result

JUNIT = """<?xml version="1.0"?>
<testsuite name="x" tests="5" failures="1" disabled="1" skipped="1">
  <testcase name="a" status="run"><system-out/></testcase>
  <testcase name="b" status="run"/>
  <testcase name="c" status="fail"><failure message="x"/></testcase>
  <testcase name="d" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/></testcase>
  <testcase name="e" status="disabled"/>
</testsuite>
"""

CTEST = """#!/bin/sh
echo "ctest $*"
while [ $# -gt 0 ]; do
  case $1 in --output-junit) out=$2 ;; --preset) preset=$2 ;; esac
  shift
done
case $preset in
  dev) echo '<testsuite><testcase name="a" status="run"/></testsuite>' > $out ;;
  asan) echo '<testsuite><testcase name="b" status="fail"/></testsuite>' > $out; exit 8 ;;
  tsan) echo '<testsuite/>' > $out ;;
  inject) exit 3 ;;
esac
"""


@pytest.fixture
def checkout(tmp_path, monkeypatch, script):
    monkeypatch.setenv("PATH", f"{script('ctest', CTEST).parent}:/usr/bin:/bin")
    for preset in testing.PRESETS:
        (tmp_path / "build" / preset).mkdir(parents=True)

    def build_preset(_checkout, preset, _options, _gently):
        if preset == "release":
            raise TerraceError("a.cpp:1: error: no")

    monkeypatch.setattr("terrace.build.build_preset", build_preset)
    return Checkout(tmp_path)


def test_the_report_of_ctest_is_counted(tmp_path):
    (tmp_path / "j.xml").write_text(JUNIT)
    result = Result("dev")
    testing.read_junit(tmp_path / "j.xml", result)
    assert (result.passed, result.failed, result.skipped) == (2, 1, 2)
    assert result.failures == ["c"]


def test_the_last_line_adds_up_all_presets(checkout, capsys):
    assert testing.run_tests(checkout, ("dev", "asan")) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "1 passed, 1 failed, 1 skipped"  # skipped: there is no check_layers.py here
    assert "FAILED asan: b" in lines


def test_success_is_exit_status_0(checkout, capsys):
    assert testing.run_tests(checkout, ("dev",)) == 0
    assert capsys.readouterr().out.endswith("\n1 passed, 0 failed, 1 skipped\n")


def test_no_test_at_all_is_no_success(checkout):
    assert testing.run_tests(checkout, ("tsan",)) == 1


def test_a_ctest_that_dies_is_a_failure(checkout, capsys):
    assert testing.run_tests(checkout, ("inject", "dev")) == 1
    assert "FAILED inject: ctest ended with status 3" in capsys.readouterr().out


def test_a_build_that_fails_is_a_failure_and_the_other_presets_go_on(checkout, capsys):
    assert testing.run_tests(checkout, ("release", "dev")) == 1
    printed = capsys.readouterr().out
    assert "a.cpp:1: error: no" in printed
    assert printed.endswith("\n1 passed, 1 failed, 1 skipped\n")


@pytest.mark.parametrize(("text", "status"), [("", 0), ("import sys; sys.exit(1)", 1)])
def test_the_layers_are_checked_first(checkout, capsys, text, status):
    (checkout.root / "tools").mkdir()
    (checkout.root / "tools" / "check_layers.py").write_text(text)
    assert testing.run_tests(checkout, ("dev",)) == status
    assert capsys.readouterr().out.endswith(f"{2 - status} passed, {status} failed, 0 skipped\n")


def test_tests_that_do_not_depend_on_the_preset_run_once(checkout, capfd):
    testing.run_tests(checkout, ("dev", "tsan"), "stress")
    first, second = (x for x in capfd.readouterr().out.splitlines() if x.startswith("ctest "))
    assert "--tests-regex stress" in first
    assert "--label-exclude" not in first
    assert second.endswith("--tests-regex stress --label-exclude ^(models|install)$")


def test_the_next_preset_is_built_while_tests_run(checkout, monkeypatch, script, capsys):
    """The tests of the first end when the second is built, and fail if that does not come."""
    waiting = CTEST.replace("case $preset in", """n=0
until [ -e asan-is-built ] || [ $n = 600 ]; do sleep 0.1; n=$((n + 1)); done
[ -e asan-is-built ] || exit 1
case $preset in""")
    monkeypatch.setenv("PATH", f"{script('ctest', waiting).parent}:/usr/bin:/bin")

    def build_preset(a_checkout, preset, _options, gently):
        assert gently == (preset != "dev")
        (a_checkout.root / f"{preset}-is-built").touch()

    monkeypatch.setattr("terrace.build.build_preset", build_preset)
    assert testing.run_tests(checkout, ("dev", "asan")) == 1
    assert capsys.readouterr().out.endswith("\n1 passed, 1 failed, 1 skipped\n")  # as without waiting


def test_musl_has_a_turn_where_something_compiles_for_it(monkeypatch, script):
    monkeypatch.setenv("PATH", str(script("musl-gcc", "exit 0").parent))
    assert testing.possible_presets() == testing.PRESETS
    monkeypatch.setenv("PATH", "/nowhere")
    assert set(testing.PRESETS) - set(testing.possible_presets()) == {"musl"}


def test_all_is_handed_to_cmake():
    for preset in testing.PRESETS:
        assert testing.options_for(preset)["TERRACE_EVERY_TEST"] == "OFF"
        assert testing.options_for(preset, everything=True)["TERRACE_EVERY_TEST"] == "ON"


def test_benchmarks_are_compiled_in_one_preset():
    assert [p for p in testing.PRESETS if testing.options_for(p)["TERRACE_BENCH"] == "ON"] == [
        "release"
    ]
