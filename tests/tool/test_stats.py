# SPDX-License-Identifier: MIT OR Apache-2.0
"""Reading and adding up statistics."""

import json

from terrace.report import stats


def row(total, level):
    return next(r["values"] for r in total["levels"] if r["level"] == level)


def test_values_of_all_processes_are_added_by_level_and_key(statistics):
    total = stats.total([statistics(1), statistics(2), statistics(3)], 1)
    assert row(total, "core")["allocations"] == 3000
    assert row(total, "global") == {"allocations": 360, "frees": 0}
    assert total["memory"]["live"] == 4800
    assert total["processes"] == 3


def test_a_value_without_meaning_at_a_level_stays_absent(statistics):
    assert "aborts" not in row(stats.total([statistics(1), statistics(2)], 1), "global")


def test_the_description_comes_from_the_program_that_was_started(statistics):
    child, main = statistics(5, command="child", slots=8), statistics(4, command="main")
    total = stats.total([child, main], 4)
    assert total["command"] == "main"
    assert total["slots"] == 8


def test_without_statistics_of_the_program_itself_a_child_describes_the_run(statistics):
    assert stats.total([statistics(5, command="child")], 4)["command"] == "child"


def test_levels_and_rungs_of_different_processes_stand_side_by_side(statistics):
    other = statistics(2, rung="thread", levels=[{"level": "thread", "values": {"frees": 1}}])
    total = stats.total([statistics(1), other], 1)
    assert [r["level"] for r in total["levels"]] == ["core", "global", "thread"]
    assert total["rungs"] == {"mm_cid": 1, "thread": 1}


def test_classes_are_added_by_size_in_order(statistics):
    bigger = {"class": 9, "size": 144, "levels": {"core": {"allocations": 5}}}
    total = stats.total([statistics(1, classes=[bigger]), statistics(2), statistics(3)], 1)
    assert [c["size"] for c in total["classes"]] == [16, 144]
    assert total["classes"][0]["levels"]["core"]["allocations"] == 2000


def test_the_sum_is_statistics_of_the_same_schema(statistics):
    total = stats.total([statistics(1)], 1)
    assert set(statistics()) <= set(total)
    assert stats.total([total, total], 1)["memory"]["live"] == 3200


def test_files_that_were_cut_short_or_are_of_another_schema_are_counted(tmp_path, statistics):
    (tmp_path / "1").write_text(json.dumps(statistics(1)))
    (tmp_path / "2").write_text(json.dumps(statistics(2))[:100])
    (tmp_path / "3").write_text("")
    (tmp_path / "4").write_text(json.dumps(statistics(4, schema=99)))
    found = stats.load_directory(str(tmp_path))
    assert [p["pid"] for p in found.processes] == [1]
    assert found.unreadable == 3
