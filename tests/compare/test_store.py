# SPDX-License-Identifier: MIT OR Apache-2.0
"""The store: what is read is what was written, a torn line does no harm, and unlike things do not meet."""

from dataclasses import replace

import pytest
from made_up import header, measurements
from store import WORK, ChangedError, Header, InUseError, Key, Measurement, Store


def test_what_is_read_is_what_was_written(tmp_path):
    written = Store(tmp_path / "x.jsonl")
    written.begin(header())
    for m in measurements(2, 0.1):
        written.add(m)
    read = Store(tmp_path / "x.jsonl")
    assert read.results == written.results
    assert read.header == header()


def test_a_torn_line_is_dropped_and_the_next_one_is_whole(tmp_path):
    path = tmp_path / "x.jsonl"
    first = Store(path)
    first.begin(header())
    first.add(Measurement(Key(WORK, "ring/1", "glibc", 0), {"seconds": 1.0}))
    first.close()
    whole = path.read_bytes()
    path.write_bytes(whole + whole.splitlines()[-1][:20])
    again = Store(path)
    assert len(again.results) == 1
    again.begin(header())
    again.add(Measurement(Key(WORK, "ring/1", "glibc", 1), {"seconds": 2.0}))
    again.close()
    assert [m.values for m in Store(path).results.values()] == [{"seconds": 1.0}, {"seconds": 2.0}]


def test_another_library_is_refused_by_name_and_nothing_is_written(tmp_path):
    path = tmp_path / "x.jsonl"
    first = Store(path)
    first.begin(header())
    first.close()
    before = path.read_bytes()
    other = replace(header(), facts={"allocator terrace": "another hash"})
    with pytest.raises(ChangedError, match="allocator terrace was hash-of-terrace, is another hash"):
        Store(path).begin(other)
    assert path.read_bytes() == before


def test_more_allocators_and_workloads_join(tmp_path):
    path = tmp_path / "x.jsonl"
    first = Store(path)
    first.begin(header())
    first.close()
    more = Header({"allocator new": "1"}, {"new": {}}, {"w/1": {"name": "w", "group": "micro", "threads": 1}}, {}, "later")
    second = Store(path)
    second.begin(more)
    assert list(second.header.allocators)[-1] == "new"
    assert "w/1" in second.header.workloads
    assert second.header.began == header().began


def test_one_writer_at_a_time(tmp_path):
    first = Store(tmp_path / "x.jsonl")
    first.begin(header())
    with pytest.raises(InUseError):
        Store(tmp_path / "x.jsonl").begin(header())
    first.close()
    Store(tmp_path / "x.jsonl").begin(header())
