# SPDX-License-Identifier: MIT OR Apache-2.0
"""When a row is searched in full and when not, with a made-up model of a made-up source."""

import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "models"))

import check
import record

# A counter that comes to its end after 100 steps; the fault is found at the last of them.
MODEL = """#include "part.pml"
active proctype count() {
  do
  :: n < 100 -> n++
  :: n == 100 -> break
  od;
#ifdef WRONG
  assert(n != 100)
#else
  assert(n == 100)
#endif
}
"""
ROWS = (
    check.right("counts", "made_up", "to its end"),
    check.mutant("WRONG", "made_up", "a false end"),
)

with_spin = pytest.mark.skipif(
    shutil.which("spin") is None or shutil.which("cc") is None, reason="needs spin and cc"
)


def searched_at_once(row, bounded=False):
    """Instead of check.check()."""
    return row, "(bounded search)" if bounded else "passes", True, 0.0, 0.0, 0.0


@pytest.fixture
def tree(tmp_path, monkeypatch):
    here = tmp_path / "models"
    here.mkdir()
    (here / "made_up.pml").write_text(MODEL)
    (here / "part.pml").write_text("byte n; /* a counter */\n")
    (tmp_path / "source.cpp").write_text("int n;  // a comment\n")
    monkeypatch.setattr(check, "HERE", here)
    monkeypatch.setattr(check, "ROWS", ROWS)
    monkeypatch.setattr(record, "SOURCES", {"made_up": ("source.cpp",)})
    return here


@pytest.fixture
def models(tree, monkeypatch):
    monkeypatch.setattr(check, "check", searched_at_once)
    monkeypatch.setattr(shutil, "which", lambda name: name)
    return tree


def run(monkeypatch, capsys, *arguments):
    """Exit status, and each row's line."""
    monkeypatch.setattr(sys, "argv", ["check.py", *arguments])
    status = check.main()
    lines = capsys.readouterr().out.splitlines()
    return status, {x.split()[1]: x for x in lines if x.startswith("made_up ")}


def is_bounded(monkeypatch, capsys) -> bool:
    status, lines = run(monkeypatch, capsys, "--if-changed", "counts")
    assert status == 0
    return "(bounded search)" in lines["counts"]


def test_what_is_not_recorded_is_searched_in_full(models, monkeypatch, capsys):
    assert not is_bounded(monkeypatch, capsys)


def test_what_is_as_recorded_is_searched_within_bounds(models, monkeypatch, capsys):
    assert run(monkeypatch, capsys, "--record")[0] == 0
    assert is_bounded(monkeypatch, capsys)


@with_spin
def test_a_mutant_is_searched_to_its_error(tree, monkeypatch, capsys):
    recorded = {row.name: record.fingerprint(row, tree) for row in ROWS}
    monkeypatch.setattr(check.record, "read", lambda _here: recorded)
    status, lines = run(monkeypatch, capsys, "--if-changed", "WRONG")
    assert status == 0
    assert "found:" in lines["WRONG"]


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("models/made_up.pml", "n == 100 ->", "n >= 100 ->"),
        ("models/part.pml", "byte", "int"),
        ("source.cpp", "int", "long"),
    ],
)
def test_a_change_makes_it_a_full_search(models, monkeypatch, capsys, name, old, new):
    run(monkeypatch, capsys, "--record")
    file = models.parent / name
    file.write_text(file.read_text().replace(old, new))
    assert not is_bounded(monkeypatch, capsys)


@pytest.mark.parametrize("name", ["models/part.pml", "source.cpp"])
def test_a_comment_is_no_change(models, monkeypatch, capsys, name):
    run(monkeypatch, capsys, "--record")
    file = models.parent / name
    file.write_text("// words\n" + file.read_text().replace("comment", "remark"))
    assert is_bounded(monkeypatch, capsys)


def test_another_row_of_the_same_name_is_a_change(models, monkeypatch, capsys):
    run(monkeypatch, capsys, "--record")
    monkeypatch.setattr(check, "ROWS", (check.right("counts", "made_up", "", depth=1000),))
    assert not is_bounded(monkeypatch, capsys)


@with_spin
def test_a_fault_fails_a_bounded_search_as_well(tree, monkeypatch, capsys):
    (tree / "made_up.pml").write_text(MODEL.replace("assert(n == 100)", "assert(false)"))
    monkeypatch.setattr(check, "unchanged", lambda rows: {row.name for row in rows})
    status, lines = run(monkeypatch, capsys, "--if-changed", "counts")
    assert status == 1
    assert "FAILS" in lines["counts"]


@with_spin
def test_only_what_is_as_expected_is_recorded(tree, monkeypatch, capsys):
    (tree / "made_up.pml").write_text(MODEL.replace("assert(n == 100)", "assert(false)"))
    assert run(monkeypatch, capsys, "--record")[0] == 1
    assert list(record.read(tree)) == ["WRONG"]


def test_every_model_of_the_tree_says_what_it_describes():
    root = Path(__file__).resolve().parents[2]
    assert {row.model for row in check.ROWS} == set(record.SOURCES)
    for names in record.SOURCES.values():
        assert [name for name in names if not (root / name).is_file()] == []
