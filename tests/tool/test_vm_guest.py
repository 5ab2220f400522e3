# SPDX-License-Identifier: MIT OR Apache-2.0
"""`terrace test vm`: tests that share a process, and what the guest tells of all kinds of ends."""

import json
import subprocess
from pathlib import Path

from terrace.vm import command as vm
from terrace.vm import batches as vm_batches
from terrace.vm import tests as vm_tests
from terrace.vm.rows import FOUR, Row
from vm_support import ALL, BUILD, ROW, listed, read, stresses

def unit_tests(*names, **more):
    gtest = [(f"unit.{n}", [f"{BUILD}/u", f"--gtest_filter={n}", "--all"]) for n in names]
    listing = {"tests": [listed(name, command, **more) for name, command in gtest]}
    return vm_tests.read_tests(listing, BUILD, ALL)


def test_unit_tests_of_one_program_share_a_process():
    tests = unit_tests("A.a", "A.b", "B/C.c/0  # GetParam() = 1")
    tests += unit_tests("A.d", ENVIRONMENT=["X=1"])
    first, other = vm_batches.batches(tests)
    assert first["command"] == [f"{BUILD}/u", "--all"]
    assert list(first["parts"].values()) == ["unit.A.a", "unit.A.b", "unit.B/C.c/0"]
    assert other["parts"] == {"A.d": "unit.A.d"}


def test_cases_of_a_driver_share_a_process():
    driver = ["/usr/bin/python3", "-B", "/w/tests/env/driver.py", "--preload", "x"]
    listing = {"tests": [listed(f"env.{n}", [*driver, n]) for n in ("files", "layouts_of")]}
    listing["tests"].append(listed("misuse.mm_cid.punctuated", ["/usr/bin/python3", "m.py"]))
    env, misuse = vm_batches.batches(vm_tests.read_tests(listing, BUILD, ALL))
    assert env["command"] == driver
    assert env["parts"] == {"files": "env.files", "layouts_of": "env.layouts_of"}
    assert "parts" not in misuse


def test_a_batch_has_the_place_of_its_tests():
    driver = ["/usr/bin/python3", "-B", "/w/tests/env/driver.py"]
    names = ("env.files", "env.rungs_are_forced", "unit.A.a")
    listing = {"tests": [listed(name, [*driver, name]) for name in names]}
    tests = vm_tests.read_tests(listing, BUILD, ALL)
    plan = vm.make_plan(ROW, tests, 60)
    first = [next(iter(t.get("parts", {}).values()), t["name"]) for t in plan["tests"]]
    assert first == ["env.rungs_are_forced", "unit.A.a", "env.files"]


def test_tests_of_a_batch_are_counted():
    plan = {"tests": [{"parts": {"a": "unit.a", "b": "unit.b"}}, {"name": "stress.x"}]}
    assert vm.planned(plan) == 4


def test_some_guests_have_only_what_depends_most_on_kernel_and_machine():
    brief = Row("newest", "trixie", "x86_64", FOUR, brief=True)
    whole = {test["name"] for test in vm.make_plan(ROW, stresses(), 60)["tests"]}
    less = {test["name"] for test in vm.make_plan(brief, stresses(), 60)["tests"]}
    assert {"vm.traffic", "unit.Balance.x", "unplug.stress.cpu_id.calm"} < less < whole
    assert whole - less >= {"stress.getcpu.calm", "unplug.stress.thread.calm"}


def test_the_api_is_tested_without_what_takes_long():
    listing = {"tests": [listed("api.mm_cid.punctuated", [f"{BUILD}/tests/api/api_test"])]}
    (api,) = vm_tests.read_tests(listing, BUILD, ALL)
    assert api.command[1].startswith("--gtest_filter=-")


# ---- the guest's side


def run_guest(tmp_path, *tests, expect=None, **limits):
    defaults = {
        "environment": {},
        "directory": "/",
        "timeout": 2,
        "skip_status": 77,
        "skip_pattern": None,
    }
    plan = {"tests": [{**defaults, **t} for t in tests], "expect": expect or {}, "seconds": 60}
    plan |= limits
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    guest = Path(__file__).resolve().parents[1] / "vm" / "guest.py"
    done = subprocess.run(
        ["python3", "-B", str(guest), str(tmp_path / "plan.json")],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return read(done.stdout, planned=len(tests) + 1)


def shell(name, text, **more):
    return {"name": name, "command": ["sh", "-c", text], **more}


def test_the_guest_reports_each_end_of_a_test(tmp_path):
    outcome = run_guest(
        tmp_path,
        shell("good", '[ "$X" = 1 ]', environment={"X": "1"}),
        shell("bad", "echo why; exit 3"),
        shell("left_out", "exit 77"),
        shell("pattern", "echo '[  SKIPPED ]'", skip_pattern=r"\[  SKIPPED \]"),
        shell("endless", "sleep 60"),
        {"name": "absent", "command": ["/no/such/program"]},
    )
    assert outcome.ended
    assert outcome.results == {
        "vm.machine_is_as_asked": "passed",
        "good": "passed",
        "bad": "failed",
        "left_out": "skipped",
        "pattern": "skipped",
        "endless": "failed",
        "absent": "failed",
    }
    assert outcome.reasons["endless"] == "did not end within 2 s"
    assert "(sleep) S wchan" in outcome.outputs["endless"]
    assert outcome.outputs["bad"] == "why\n"


def test_the_guest_compares_the_machine_with_what_was_asked(tmp_path):
    outcome = run_guest(tmp_path, expect={"cpus": 4096})
    assert outcome.results == {"vm.machine_is_as_asked": "failed"}


def test_no_test_begins_when_the_time_is_over(tmp_path):
    outcome = run_guest(tmp_path, shell("a", "true"), seconds=0)
    assert outcome.verdict == "passed; 1 not run"


GTEST = r"""
for name in $(echo "${1#*=}" | tr : " "); do
  case $name in
    B.good) echo "[       OK ] B.good (3 ms)" ;;
    B.left_out) echo "noise[  SKIPPED ] B.left_out (0 ms)" ;;
    B.bad) echo why; echo "[  FAILED  ] B.bad, where GetParam() = 1 (0 ms)" ;;
    B.dies) exit 9 ;;
    B.hangs) sleep 60 ;;
  esac
done
echo "[  FAILED  ] B.bad"
"""


def batch(*names):
    (entry,) = vm_batches.batches(unit_tests(*(f"B.{n}" for n in names)))
    return entry | {"command": ["sh", "-c", GTEST, "gtest"], "directory": "/"}


def test_a_batch_is_told_by_its_tests_and_goes_on_behind_one_that_dies(tmp_path):
    test = batch("good", "bad", "dies", "left_out", "hangs") | {"timeout": 2}
    outcome = run_guest(tmp_path, test, shell("other", "true"), workers=2)
    assert outcome.ended
    assert outcome.results == {
        "vm.machine_is_as_asked": "passed",
        "other": "passed",
        "unit.B.good": "passed",
        "unit.B.bad": "failed",
        "unit.B.dies": "failed",
        "unit.B.left_out": "skipped",
        "unit.B.hangs": "failed",
    }
    assert outcome.reasons["unit.B.dies"] == "ended with status 9"
    assert outcome.reasons["unit.B.hangs"] == "did not end within 2 s"
    assert "why" in outcome.outputs["unit.B.bad"]


def test_a_batch_may_take_as_long_as_it_makes_progress(tmp_path):
    text = 'for i in 1 2 3 4 5 6; do sleep 0.5; echo "[       OK ] B.$i (0 ms)"; done'
    test = batch(*"123456") | {"command": ["sh", "-c", text], "timeout": 2}
    outcome = run_guest(tmp_path, test)
    assert outcome.count("passed") == 7


def test_what_needs_the_machine_for_itself_runs_first_and_alone(tmp_path):
    alone = shell("a", "sleep 1; touch done", directory=str(tmp_path), alone=True)
    outcome = run_guest(tmp_path, shell("b", "[ -e done ]", directory=str(tmp_path)), alone, workers=2)
    assert outcome.count("passed") == 3
    named = {t["name"]: t["alone"] for t in vm.make_plan(ROW, stresses(), 60)["tests"]}
    assert named["unplug.stress.mm_cid.calm"]
    assert not named["unit.Balance.x"]


def test_a_test_that_hangs_is_cut_off_when_the_time_is_over(tmp_path):
    guest = shell("endless", "sleep 60", timeout=600)
    outcome = run_guest(tmp_path, shell("a", "true"), guest, seconds=2, least=1)
    assert outcome.ended
    assert outcome.results["a"] == "passed"
    assert outcome.verdict == "passed; 1 not run, time over in endless"
