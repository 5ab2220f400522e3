# SPDX-License-Identifier: MIT OR Apache-2.0
"""`terrace export` of real processes, and that the dashboard asks for what there is."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

for module in ("numpy", "scipy", "elftools", "rich", "psutil", "google.protobuf"):
    pytest.importorskip(module)
pytest.importorskip("prometheus_client")

# ruff: noqa: E402 - what follows needs these
from prometheus_client.parser import text_string_to_metric_families
from terrace import export
from terrace.cli import main
from terrace.debug.sampled.symbolizer import has_unwinder

from conftest import MAIN
from debugged import LIBRARY, compiled, running
from sites import KEPT, MIB, SAMPLED

pytestmark = pytest.mark.skipif(not LIBRARY.exists(), reason="build/release is not built")


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return compiled(tmp_path_factory.mktemp("program"), "-O2", name="sites")


def samples(text: str) -> dict[str, list[tuple[dict[str, str], float]]]:
    found: dict[str, list[tuple[dict[str, str], float]]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, []).append((sample.labels, sample.value))
    return found


def written(directory: Path, *words: object) -> dict[str, list[tuple[dict[str, str], float]]]:
    path = directory / "terrace.prom"
    assert main(["export", *map(str, words), "--textfile", str(path)]) == 0
    assert [p.name for p in directory.iterdir()] == [path.name]  # node_exporter reads whole files
    return samples(path.read_text(encoding="utf-8"))


def test_what_a_process_holds(program, tmp_path) -> None:
    with running(program, **SAMPLED) as process:
        found = written(tmp_path, "--pid", process.pid)
        process.stdin.write(b"x")
        process.stdin.flush()
        assert process.stdout.readline() == b"taken\n"
        later = written(tmp_path, "--pid", process.pid)
    (labels, live), = found["terrace_live_bytes"]  # fmt: skip
    assert labels == {"pid": str(process.pid), "command": "sites"}
    assert sum(KEPT.values()) <= live < sum(KEPT.values()) + 2 * MIB
    assert found["terrace_resident_bytes"][0][1] > 24 * MIB  # calloc's pages are not touched
    levels = {labels["level"] for labels, _ in found["terrace_free_bytes"]}
    assert levels >= {"core", "slabs", "spans", "large"}
    assert later["terrace_live_bytes"][0][1] - live == 16 * MIB
    allocations = (
        later["terrace_allocations_total"][0][1] - found["terrace_allocations_total"][0][1]
    )
    assert 65536 <= allocations < 65540  # one that was interrupted counts twice
    assert found["terrace_heap_info"][0][0]["library"] == str(LIBRARY.resolve())
    if has_unwinder():
        by_site = {s["function"]: size for s, size in found["terrace_site_live_bytes"]}
        for name, size in KEPT.items():
            assert abs(by_site[name] - size) < 5 * (size * 65536) ** 0.5, by_site


def test_the_dashboard_asks_for_what_there_is(program, tmp_path, capsys) -> None:
    with running(program, **SAMPLED) as process:
        there = written(tmp_path, "--pid", process.pid)
    assert main(["export", "--dashboard"]) == 0
    printed = capsys.readouterr().out
    assert printed == (Path(export.__file__).with_name("dashboard.json")).read_text("utf-8")
    dashboard = json.loads(printed)
    asked = {
        name
        for panel in dashboard["panels"]
        for target in panel["targets"]
        for name in re.findall(r"terrace_\w+", target["expr"])
    }
    variables = str(dashboard["templating"])
    asked |= set(re.findall(r"label_values\((terrace_\w+)", variables))
    if not has_unwinder():
        asked.discard("terrace_site_live_bytes")
    assert asked <= there.keys()
    assert there.keys() - asked <= {"terrace_processes", "terrace_mapped_bytes"}


def test_processes_of_a_name_come_and_go(program, tmp_path) -> None:
    from terrace.export.command import of_name
    from terrace.export.metrics import TerraceCollector

    named = Path(shutil.copy(program, tmp_path / f"sites{os.getpid()}"))  # nobody else's

    def live() -> set[str]:
        found = {metric.name: metric for metric in collector.collect()}
        rows = found["terrace_live_bytes"].samples if "terrace_live_bytes" in found else []
        assert found["terrace_processes"].samples[0].value == len(rows)
        return {sample.labels["pid"] for sample in rows}

    collector = TerraceCollector(lambda: of_name(named.name), 0)
    assert live() == set()
    with running(named) as one, running(named, LD_PRELOAD=""):
        assert live() == {str(one.pid)}
        with running(named) as two:
            assert live() == {str(one.pid), str(two.pid)}
        assert live() == {str(one.pid)}
    assert live() == set()


def test_it_is_served(program) -> None:
    with running(program) as process:
        words = ("--pid", str(process.pid), "--listen", "127.0.0.1:0")
        server = subprocess.Popen(
            [sys.executable, "-I", str(MAIN), "export", *words], stderr=subprocess.PIPE, text=True
        )
        try:
            where = re.search(r"http://\S+", server.stderr.readline())
            with urllib.request.urlopen(where.group(), timeout=60) as answer:
                found = samples(answer.read().decode("utf-8"))
        finally:
            server.terminate()
        assert server.wait() == 0
    assert found["terrace_live_bytes"][0][0]["pid"] == str(process.pid)


def test_a_dash_as_file_prints(program, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    with running(program) as process:
        assert main(["export", "--pid", str(process.pid), "--textfile", "-"]) == 0
    assert samples(capsys.readouterr().out)["terrace_live_bytes"]
    assert not list(tmp_path.iterdir())


def test_what_can_not_be_done_is_one_line(capsys, tmp_path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        cases = {
            ("--match", "x", "--listen", f"127.0.0.1:{port}"): (1, "Address already in use"),
            ("--match", "x", "--listen", "9696"): (2, "an address and a port"),
            ("--match", "x", "--textfile", f"{tmp_path}/none/a.prom"): (1, "No such file"),
            ("--pid", "4194303"): (1, "there is no process 4194303"),
            (): (2, "name a process by --pid PID"),
        }
        for words, (status, line) in cases.items():
            assert main(["export", *words]) == status
            written = capsys.readouterr()
            assert written.out == "" and written.err.count("\n") == 1 and line in written.err
