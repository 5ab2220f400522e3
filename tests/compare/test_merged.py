# SPDX-License-Identifier: MIT OR Apache-2.0
"""Several machines side by side: each has its own numbers, what one lacks stays empty, and what can not be compared is refused."""

import json
from dataclasses import replace
from pathlib import Path

import compare
import pytest
from made_up import FACTOR, WORKLOADS, header, stored
from merged import MergeError, labels, merge
from merged_plots import all_plots
from merged_tables import NOTHING, alike, all_tables, means, per_workload, sentences, summary
from metrics import PEAK, TIME
from store import Measurement, Store


def told(processor, without=(), lacking=(), **machine):
    """A header of another machine, without some allocators and lacking some workloads."""
    head = header()
    head.machine |= {"processor": processor, **machine}
    head.allocators = {name: info for name, info in head.allocators.items() if name not in without}
    head.workloads = {key: info for key, info in head.workloads.items() if key not in lacking}
    return head


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    """First: everything, and no number but its own has Terrace at twice its time in browser/1. Second: no `left`, no browser/1."""
    folder = tmp_path_factory.mktemp("machines")
    first, second = folder / "first.jsonl", folder / "second.jsonl"
    stored(first, rounds=2, noise=0)
    store = Store(first)
    store.begin(header())
    for m in list(store.results.values()):
        if (m.key.workload, m.key.allocator) == ("browser/1", "terrace"):
            store.add(Measurement(m.key, m.values | {"seconds": 2 * m.values["seconds"]}))
    store.close()
    stored(second, rounds=2, noise=0, told=told("another", without=["left"], lacking=["browser/1"]))
    return [first, second]


@pytest.fixture(scope="module")
def data(paths):
    return merge(paths)


def cells(table):
    return {row[0].text: row[1:] for row in table.rows}


def test_every_machine_has_its_own_ratios_to_its_own_best(data):
    found = cells(per_workload(data, TIME))
    assert [c.text for c in found["ring/1"][1:]] == ["0.83 left (0.83-0.83)", "0.75 glibc (0.75-0.75)"]
    assert found["browser/1"][1].order == pytest.approx(2 * 0.75 / 0.9)


def test_what_a_machine_has_not_measured_is_a_dash(data):
    assert cells(per_workload(data, TIME))["browser/1"][2] is NOTHING
    assert [c.text for c in cells(means(data, TIME))["left"]] == ["0.90 (0.90-0.90)", "-"]
    values = next(t for t in json.loads(_written(data)) if t["name"] == "per-seconds")
    row = next(i for i, cells in enumerate(values["rows"]) if cells[0] == "browser/1")
    assert values["values"][row][3] is None


def _written(data):
    from tables import as_json

    return json.dumps(as_json(all_tables(data)))


def test_no_mean_has_a_workload_that_not_all_machines_have(data):
    for machine in data.machines:
        assert machine.shared.mean(TIME, "all", "terrace").middle == pytest.approx(FACTOR["terrace"])
        assert machine.shared.mean(TIME, "all", "terrace").count == 10
    assert data.machines[0].data.mean(TIME, "all", "terrace").middle > 1.05 * FACTOR["terrace"]
    assert [row[1].order for row in summary(data).rows] == pytest.approx([0.75 / 0.9, 0.75])


def test_a_failure_is_told_and_counts_in_no_mean(data):
    (right,) = [row for row in means(data, TIME).rows if row[0].text == "right"]
    assert [c.text for c in right[1:]] == ["1.30 (1.30-1.30) [9 of 10]"] * 2


def test_with_the_same_rivals_the_machines_are_alike(data):
    assert "glibc, middle, right" in alike(data).title
    assert [row[1].order for row in alike(data).rows] == pytest.approx([0.75, 0.75])
    assert [row[6].order for row in summary(data).rows] == [row[6].order for row in alike(data).rows]  # the best in memory is everywhere


def test_without_a_difference_the_rivals_are_not_told_twice(paths, tmp_path):
    other = stored(tmp_path / "x.jsonl", rounds=2, noise=0, told=told("another")).path
    assert alike(merge([paths[0], other])) is None


def test_a_thread_per_core_is_the_same_workload_whatever_the_number(paths, tmp_path):
    store = stored(tmp_path / "whole.jsonl", rounds=2, noise=0)
    many = told("many", cores="16")
    many.workloads = {k.replace("/4", "/16"): i | {"threads": 16 if i["threads"] == 4 else i["threads"]} for k, i in WORKLOADS.items()}
    many.workloads["git/16"] = {"name": "git", "group": "program", "threads": 16}
    path = tmp_path / "many.jsonl"
    other = Store(path)
    other.begin(many)
    for m in store.results.values():
        other.add(replace(m, key=replace(m.key, workload=m.key.workload.replace("/4", "/16"))))
        if m.key.workload == "database/1":
            other.add(replace(m, key=replace(m.key, workload="git/16")))
    other.close()
    found = merge([paths[0], path])
    assert "churn/cores" in found.workloads and "churn/16" not in found.workloads
    assert "git/16" in found.workloads, "the threads of a program do not depend on the cores"
    assert found.machines[1].shared.mean(TIME, "micro", "terrace").count == 6


def test_without_a_common_workload_there_is_no_mean(paths, tmp_path):
    head = told("a third", lacking=[w for w in WORKLOADS if w != "browser/1"])
    other = stored(tmp_path / "x.jsonl", rounds=2, noise=0, told=head).path
    found = merge([paths[1], other])
    assert all(cell is NOTHING for table in (summary(found), means(found, PEAK)) for row in table.rows for cell in row[1:])
    assert "No workload was measured on all machines, so there is no mean." in list(sentences(found))


def test_what_is_not_the_same_everywhere_is_told(paths, tmp_path):
    head = told("another")
    head.allocators = {name: info | ({"version": "2.0"} if name == "left" else {}) for name, info in head.allocators.items()}
    head.allocators["terrace"] = head.allocators["terrace"] | {"commit": "abc"}
    head.workloads = {k: i for k, i in head.workloads.items() if k != "ring/1"}
    other = stored(tmp_path / "x.jsonl", rounds=2, noise=0, told=head).path
    found = list(sentences(merge([paths[0], other])))
    assert "left is not the same everywhere: 1.0, 2.0." in found
    assert "terrace is not the same everywhere: unknown, abc." in found
    assert any("another, 4 cores has not measured 1 of 13 workloads (ring/1)" in line for line in found)


def test_the_plots_show_what_the_tables_say_and_nothing_for_what_was_not_measured(data):
    plots = {p.name: p for p in all_plots(data)}
    (heat,) = plots["heat"].choices["time"].data
    assert list(heat.x) == ["made up, 4 cores", "another, 4 cores"]
    shown = dict(zip(heat.y, map(list, heat.text), strict=True))
    assert (shown["ring/1"], shown["browser/1"]) == (["0.83", "0.75"], ["1.67", ""])
    left = next(t for t in plots["means"].choices["time, all"].data if t.name == "left")
    assert left.y == pytest.approx([FACTOR["left"]]) and list(left.x) == ["made up,<br>4 cores"], "of the one machine that has it"


def test_the_report_says_of_each_machine_what_it_is(paths, tmp_path):
    facts = {"vendor": "a vendor", "C library": "libc 1", "kernel": "Linux 1"}
    other = stored(tmp_path / "x.jsonl", rounds=2, told=told("of a name", **facts)).path
    assert compare.main(["--merge", str(paths[0]), str(other), "--out", str(tmp_path / "out")]) == 0
    for name in ("merged.html", "merged.md"):
        text = (tmp_path / "out" / name).read_text()
        assert all(fact in text for fact in ("of a name, 4 cores", "2020-01-01 00:00 UTC", *facts.values()))
    content = json.loads((tmp_path / "out" / "merged.json").read_text())
    assert content["machines"][1]["header"]["machine"].items() >= facts.items()
    assert content["machines"][0]["workloads"]["ring/1"]["seconds"]["best"] == "left"


def test_the_two_files_that_compare_writes_say_the_same(paths, tmp_path, capsys):
    compare.main(["--stored", "--out", str(_with(paths[0], tmp_path))])
    assert "2020-01-01 00:00 UTC, made up, 4 cores, Linux" in capsys.readouterr().out
    (a, b), (c, d) = (merge([path, paths[1]]).machines for path in (tmp_path / "compare.jsonl", tmp_path / "compare.json"))
    for one, other in ((a, c), (b, d)):
        assert cells(per_workload(merge([one.path]), TIME)) == cells(per_workload(merge([other.path]), TIME))


def _with(path: Path, folder: Path) -> Path:
    (folder / "compare.jsonl").write_bytes(path.read_bytes())
    return folder


def test_machines_of_one_name_are_told_apart():
    one = {"processor": "CPU(R)  X", "cores": "4", "kernel": "Linux 1", "C library": "libc 1"}
    found = labels([one, one | {"kernel": "Linux 2"}, one | {"processor": "Y", "cores": "1"}])
    assert found == ["CPU X, 4 cores, Linux 1", "CPU X, 4 cores, Linux 2", "Y, 1 core"]


OTHER = {"format": 1, "header": {"machine": {"processor": "x", "cores": "1"}, "allocators": {"glibc": {}}}}
REFUSED = {
    "absent": (None, "No such file or directory"),
    "empty": ("", "has no measurements"),
    "text": ("no JSON\n", "is not what"),
    "list": ("[1]\n", "is not what"),
    "another report": (json.dumps({"measurements": [], "header": {}}), "is not what"),
    "another format": (json.dumps(OTHER | {"format": 99}) + "\n", "is not what"),
    "another header": (json.dumps({"format": 1, "header": {"unknown": 1}}) + "\n", "is not what"),
    "nothing measured": (json.dumps(OTHER) + "\n", "has no measurements"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_another_file_is_refused_in_one_line(name, paths, tmp_path, capsys):
    text, why = REFUSED[name]
    if text is not None:
        (tmp_path / "bad").write_text(text)
    assert compare.main(["--merge", str(paths[0]), str(tmp_path / "bad"), "--out", str(tmp_path / "out")]) == 2
    said = capsys.readouterr()
    assert said.err.count("\n") == 1 and "bad" in said.err and why in said.err
    assert not said.out and not list((tmp_path / "out").iterdir())


@pytest.mark.parametrize(
    ("head", "why"),
    [
        (told("made up"), "are of the same machine: made up, 4 cores"),
        (told("made up", vendor="told later"), "are of the same machine"),
        (told("another", without=["glibc"]), "has no glibc"),
        (replace(told("another"), facts={"amount of work": "tiny"}), "different amounts of work: usual and tiny"),
        (told(""), "does not say of its machine: processor"),
    ],
)
def test_what_can_not_stand_beside_the_first_is_refused(head, why, paths, tmp_path):
    with pytest.raises(MergeError, match=why):
        merge([paths[0], stored(tmp_path / "x.jsonl", rounds=1, told=head).path])
