# SPDX-License-Identifier: MIT OR Apache-2.0
"""`terrace record`: names of traces, what is told of them, errors. Recording: tests/record."""

from pathlib import Path

import pytest
from terrace import record
from terrace.errors import TerraceError

SUMMARY = {
    **dict.fromkeys(("incomplete", "aligned", "realloc", "missed"), 0),
    **dict.fromkeys(("calloc", "from_other_threads", "end_blocks"), 1),
    **dict.fromkeys(("malloc", "free"), 3),
    "command": "fake",
    "calls": 7,
    "unknown": 2,
    "peak_bytes": 4096,
    "peak_blocks": 4,
    "end_bytes": 16,
    "threads": [6, 1],
    "sizes": [
        {"up_to": 16, "count": 3, "bytes": 40},
        {"up_to": 4096, "count": 1, "bytes": 4000},
    ],
    "lifetimes": [{"up_to": 2, "count": 3}],
}


@pytest.fixture
def traces(tmp_path):
    """A directory as the recorder leaves it: process 7 called exec once, 8 is a child of it."""
    directory = tmp_path / "parts"
    directory.mkdir()
    for name in ("7", "7.2", "8"):
        (directory / name).write_text(name)
    return directory


def test_the_programs_last_image_gets_the_name_and_the_others_their_pid(traces, tmp_path):
    output = tmp_path / "out"
    main, others = record.collect(traces, str(output), 7)
    assert main == output
    assert output.read_text() == "7.2"
    assert [path.name for path in others] == ["out.7", "out.8"]
    assert not list(traces.iterdir())


def test_images_are_ordered_as_numbers():
    paths = [Path("9.10"), Path("9.2"), Path("9"), Path("10")]
    assert sorted(paths, key=record._image) == [Path("9"), Path("9.2"), Path("9.10"), Path("10")]


def test_a_program_without_a_trace_leaves_those_of_its_children(traces, tmp_path):
    main, others = record.collect(traces, str(tmp_path / "out"), 4711)
    assert main is None
    assert [path.name for path in others] == ["out.7", "out.7.2", "out.8"]


def test_earlier_traces_are_removed_and_nothing_else(traces, tmp_path):
    (tmp_path / "out.99").write_bytes(record.MAGIC + b"old")
    (tmp_path / "out.98").write_text("somebody's")
    (tmp_path / "out.txt").write_bytes(record.MAGIC)
    record.collect(traces, str(tmp_path / "out"), 7)
    assert sorted(p.name for p in tmp_path.glob("out*")) == [
        "out", "out.7", "out.8", "out.98", "out.txt",
    ]  # fmt: skip


def test_what_the_reader_says_of_a_damaged_trace_is_passed_on_with_status_2(script, tmp_path):
    reader = script("reader", '#!/bin/sh\necho "$2: truncated" >&2; exit 2\n')
    with pytest.raises(TerraceError, match="x: truncated") as raised:
        record.read_summary(record.Programs(tmp_path, reader), "x")
    assert raised.value.status == 2


@pytest.mark.parametrize("arguments", [(), ("--",), ("--summary",), ("--summary", "a", "b")])
def test_without_a_program_or_a_trace_the_usage_is_shown(terrace, arguments):
    done = terrace("record", *arguments)
    assert done.returncode == 2
    assert "usage" in done.stderr


def test_the_magic_is_the_recorders():
    header = Path(__file__).resolve().parents[2] / "tools" / "record" / "trace.h"
    letters = ", ".join(f"'{chr(byte)}'" for byte in record.MAGIC)
    assert f"file_magic[8] = {{{letters}}}" in header.read_text()


def test_the_summary_names_all_that_it_counts(capsys):
    pytest.importorskip("rich")
    from terrace.report import record as record_report

    record_report.print_summary(SUMMARY)
    printed = capsys.readouterr().out
    for text in (
        "malloc calls of fake",
        "2 (6, 1 calls)",
        "25.0 %",
        "4.00 KiB; 4 blocks",
        "not of this trace",
        "75.0 %",
        "100.0 %",
    ):
        assert text in printed
