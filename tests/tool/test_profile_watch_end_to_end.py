# SPDX-License-Identifier: MIT OR Apache-2.0
"""`terrace profile --watch`: what a process holds over time, and the page of it."""

import re

import pytest

for module in ("numpy", "scipy", "elftools", "rich", "google.protobuf", "plotly"):
    pytest.importorskip(module)

# ruff: noqa: E402 - what follows needs these
from terrace.cli import main
from terrace.debug.sampled.symbolizer import has_unwinder
from terrace.profile import timeline as timeline_module
from terrace.profile.timeline import seconds_of, watch
from terrace.profile.timeline_page import page

from debugged import LIBRARY, compiled, running
from sites import KEPT, MIB, SAMPLED

pytestmark = [
    pytest.mark.skipif(not LIBRARY.exists(), reason="build/release is not built"),
    pytest.mark.skipif(not has_unwinder(), reason="drgn unwinds nothing here"),
]


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return compiled(tmp_path_factory.mktemp("program"), "-O2", name="sites")


def test_looks_have_sites_and_levels(program) -> None:
    with running(program, **SAMPLED) as process:
        timeline = watch(process.pid, 60.0, 1.0)
        process.stdin.write(b"x")
        process.stdin.flush()
        assert process.stdout.readline() == b"taken\n"
        timeline.moments += watch(process.pid, 60.0, 1.0).moments
    first, after = timeline.moments
    for name, size in KEPT.items():
        found = sum(held for site, held in first.sites.items() if site.startswith(name))
        assert abs(found - size) < 5 * (size * 65536) ** 0.5
    levels = first.levels()
    assert sum(KEPT.values()) <= levels["live"] < sum(KEPT.values()) + 2 * MIB
    assert levels.keys() >= {"free: core", "free: processor", "free: slabs", "free: spans"}
    assert after.levels()["live"] - levels["live"] == 16 * MIB
    assert after.resident - first.resident > 14 * MIB
    text = page(timeline)
    assert "+16.0 MiB" in text and "make_order" in text and "free: slabs" in text


def test_the_page_needs_no_network(program, tmp_path) -> None:
    path = tmp_path / "page.html"
    with running(program, **SAMPLED) as process:
        words = ("--every", "0.2s", "--for", "1s", "-o", str(path))
        assert main(["profile", "--watch", str(process.pid), *words]) == 0
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"<(script|link|img)[^>]*\b(src|href)=", text)
    assert re.search(rf"process {process.pid} \(sites\), \d+ looks? in", text)


def test_the_process_end_is_said(program, monkeypatch) -> None:
    look = timeline_module._Eye.look
    with running(program) as process:

        def look_and_end(eye):
            moment = look(eye)
            if process.poll() is None:
                process.communicate()
            return moment

        monkeypatch.setattr(timeline_module._Eye, "look", look_and_end)
        timeline = watch(process.pid, 0.05, 60.0)
    assert len(timeline.moments) == 1 and timeline.ended in page(timeline) and timeline.ended


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--watch", "4194303", "-o", "a.html"], "there is no process 4194303"),
        (["--watch", "1", "--every", "0s", "-o", "a.html"], "--every 0s: a time"),
        (["--watch", "1", "--for", "long", "-o", "a.html"], "--for long: a time"),
        (["--watch", "1"], "name the page, by -o PAGE.html"),
    ],
)
def test_what_can_not_be_done_is_one_line(words, line, capsys, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["profile", *words]) in (1, 2)
    written = capsys.readouterr()
    assert written.out == "" and written.err.count("\n") == 1 and line in written.err


def test_times_have_units() -> None:
    found = [seconds_of("--every", text) for text in ("10", "10s", "1.5m", "1h", "2d")]
    assert found == [10, 10, 90, 3600, 172800]
