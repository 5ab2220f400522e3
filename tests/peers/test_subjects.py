# SPDX-License-Identifier: MIT OR Apache-2.0
"""Which allocators there are to compare, in which order, and what each needs."""

import allocators
import pytest


@pytest.fixture
def peers(tmp_path, monkeypatch):
    """Terrace, two that were built, one that is installed, one that is not."""
    installed = tmp_path / "usr" / "libinstalled.so"
    listed = (
        allocators.Peer("first", {"VARIABLE": "1"}),
        allocators.Peer("second"),
        allocators.Peer("absent"),
        allocators.Peer("installed", installed=(str(tmp_path / "u*" / "libinstalled.so"),)),
    )
    monkeypatch.setattr(allocators, "PEERS", listed)
    built = [tmp_path / name / f"lib{name}.so" for name in ("first", "second")]
    for path in (tmp_path / "terrace.so", *built, installed):
        path.parent.mkdir(exist_ok=True)
        path.write_text("")
    return tmp_path


def test_subjects_are_those_that_are_there(peers):
    found = allocators.subjects(peers / "terrace.so", peers)
    assert [s.name for s in found] == ["glibc", "terrace", "first", "second", "installed"]
    assert found[2].environment == {"LD_PRELOAD": str(peers / "first/libfirst.so"), "VARIABLE": "1"}
    assert found[0].environment == {}


def test_subjects_by_name_must_be_there(peers):
    found = allocators.subjects(peers / "terrace.so", peers, ["second", "glibc"])
    assert [s.name for s in found] == ["second", "glibc"]
    with pytest.raises(SystemExit, match="absent is not here"):
        allocators.subjects(peers / "terrace.so", peers, ["absent"])
    with pytest.raises(SystemExit, match="no allocator nonsense"):
        allocators.subjects(peers / "terrace.so", peers, ["nonsense"])


def test_tcmalloc_runs_without_the_rseq_area_of_libc():
    tcmalloc = next(peer for peer in allocators.PEERS if peer.name == "tcmalloc")
    assert tcmalloc.environment == {"GLIBC_TUNABLES": "glibc.pthread.rseq=0"}
