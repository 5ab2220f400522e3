# SPDX-License-Identifier: MIT OR Apache-2.0
"""The tables."""

import io

import pytest

pytest.importorskip("rich")

from rich.console import Console
from terrace.report import cells
from terrace.report import tables as report
from terrace.report import stats


def rendered(table) -> list[str]:
    console = Console(file=io.StringIO(), width=200)
    console.print(table)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1536, "1.50 KiB"), (52_530, "51.3 KiB"), (1 << 20, "1.00 MiB")],
)
def test_bytes_are_shown_with_three_digits(value, text):
    assert cells.human_bytes(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(99_999, "99,999"), (123_456, "123 k"), (1_234_567, "1.23 M"), (9_999_999, "10.0 M")],
)
def test_counts_are_shortened_only_on_request(value, text):
    assert cells.human_count(value, exact=False) == text
    assert cells.human_count(value, exact=True) == f"{value:,}"


def test_rows_are_levels_and_columns_are_the_descriptors_of_the_json(statistics):
    lines = rendered(report.levels_table(stats.total([statistics()], 7)))
    header = next(line for line in lines if "allocations" in line)
    assert header.split()[1:] == [c["title"] for c in statistics()["columns"]]
    assert next(line for line in lines if " core " in line).split()[:3] == ["core", "1,000", "900"]


def test_a_column_that_the_library_adds_appears_by_itself(statistics):
    flips = {"key": "flips", "title": "flips", "unit": "events", "kind": "monotonic", "help": "x"}
    s = statistics(columns=[*statistics()["columns"], flips])
    s["levels"][0]["values"]["flips"] = 4711
    assert "4,711" in "\n".join(rendered(report.levels_table(stats.total([s], 7))))


def test_a_value_without_meaning_at_a_level_is_a_dash(statistics):
    lines = rendered(report.levels_table(stats.total([statistics()], 7)))
    assert next(line for line in lines if " global " in line).split()[-1] == "-"


def test_the_title_says_how_many_processes_were_added(statistics):
    one = rendered(report.levels_table(stats.total([statistics()], 7)))[0]
    two = rendered(report.levels_table(stats.total([statistics(7), statistics(8)], 7)))[0]
    assert "process" not in one
    assert "sum of 2 processes" in two


def test_the_line_below_names_rung_slots_placement_and_memory(statistics):
    line = cells.summary(stats.total([statistics()], 7))
    assert (
        line
        == "rung mm_cid; 4 slots; placement punctuated; held 4.00 KiB; live 1.56 KiB; purged 0 B"
    )


def test_processes_on_different_rungs_are_told_apart(statistics):
    total = stats.total([statistics(1), statistics(2), statistics(3, rung="thread")], 1)
    assert "rung mm_cid x 2, thread x 1" in cells.summary(total)


def test_large_values_fit_into_eighty_columns_when_shortened(statistics):
    values = {c["key"]: 123_456_789 for c in statistics()["columns"]}
    s = statistics(levels=[{"level": "processor", "values": values}])
    lines = rendered(report.levels_table(stats.total([s], 7), exact=False))
    assert max(map(len, lines)) <= 80


def test_all_is_printed_to_stderr_even_with_brackets_in_the_name(statistics, capsys):
    report.print_report(stats.total([statistics(command="[bold]x")], 7), per_class=True)
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "did in [bold]x" in printed.err
    assert "\N{HORIZONTAL ELLIPSIS}" not in printed.err
    assert "By size class" in printed.err
    assert "What aborts means." in printed.err
