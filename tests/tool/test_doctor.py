# SPDX-License-Identifier: MIT OR Apache-2.0
"""`terrace doctor`: facts from made-up machines, and advice."""

import json
from pathlib import Path

import pytest
from terrace import doctor, facts


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")


@pytest.fixture
def machine():
    return {
        **facts.collect(),
        "transparent_huge_pages": "madvise",
        "overcommit": "0",
        "limits": {"address_space": None, "data": None},
        "cgroup": {"memory": None, "cpus": None},
        "rseq": {
            "kernel_feature_size": 28,
            "libc_size": 20,
            "libc_offset": 0,
            "switched_off": False,
        },
        "topology": {**facts.topology(), "cpus_online": 4, "cpus_allowed": 4},
    }


@pytest.mark.parametrize(
    ("text", "cpus"), [("0-3,8", {0, 1, 2, 3, 8}), ("5", {5}), ("", set()), ("0,2-2", {0, 2})]
)
def test_lists_of_cpus(text, cpus):
    assert facts.parse_cpu_list(text) == cpus


def test_the_tightest_limit_on_the_way_up_counts(tmp_path):
    write(
        tmp_path,
        {
            "proc/self/cgroup": "0::/a/b",
            "sys/fs/cgroup/a/b/memory.max": "max",
            "sys/fs/cgroup/a/memory.max": "1048576",
            "sys/fs/cgroup/a/b/cpu.max": "150000 100000",
            "sys/fs/cgroup/a/cpu.max": "max 100000",
        },
    )
    assert facts.cgroup(tmp_path) == {"memory": 1048576, "cpus": 1.5}


def test_no_cgroup_is_no_limit(tmp_path):
    assert facts.cgroup(tmp_path) == {"memory": None, "cpus": None}


def test_last_level_caches_are_counted_by_who_shares_them(tmp_path):
    files = {"sys/devices/system/cpu/online": "0-3", "sys/devices/system/node/online": "0-1"}
    for cpu in range(4):
        cache = f"sys/devices/system/cpu/cpu{cpu}/cache/"
        for index, (level, kind, shared) in enumerate(
            (
                (1, "Data", cpu),
                (1, "Instruction", "0-3"),
                (3, "Unified", "0-1" if cpu < 2 else "2-3"),
            )
        ):
            files |= {
                f"{cache}index{index}/level": str(level),
                f"{cache}index{index}/type": kind,
                f"{cache}index{index}/shared_cpu_list": str(shared),
            }
    write(tmp_path, files)
    found = facts.topology(tmp_path)
    assert (found["cpus_online"], found["last_level_caches"], found["nodes"]) == (4, 2, 2)


def test_all_facts_of_this_machine_can_be_told():
    collected = facts.collect()
    json.dumps(collected)
    assert all(text for _, text in doctor.machine_lines(collected))


def test_nothing_to_say_about_a_good_machine(machine):
    assert doctor.advise(machine, {"works": True, "rung": "mm_cid"}) == []


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"limits": {"address_space": 1 << 30, "data": None}}, "RLIMIT_AS"),
        ({"limits": {"address_space": None, "data": 1 << 30}}, "RLIMIT_DATA"),
        ({"overcommit": "2"}, "overcommit_memory"),
        ({"transparent_huge_pages": "always"}, "huge pages"),
        ({"cgroup": {"memory": None, "cpus": 0.5}}, "time of 0.5 CPUs"),
    ],
)
def test_each_peculiarity_gets_one_line_of_advice(machine, change, word):
    (line,) = doctor.advise({**machine, **change}, {"works": True, "rung": "mm_cid"})
    assert word in line


def test_a_rung_below_the_best_is_explained(machine):
    machine["rseq"] = {**machine["rseq"], "kernel_feature_size": 20}
    assert "6.3" in doctor.advise(machine, {"works": True, "rung": "cpu_id"})[0]
    assert "restartable" in doctor.advise(machine, {"works": True, "rung": "getcpu"})[0]
    machine["rseq"]["switched_off"] = True
    assert "GLIBC_TUNABLES" in doctor.advise(machine, {"works": True, "rung": "thread"})[0]


def test_a_library_that_reports_nothing_is_not_usable(terrace):
    done = terrace("doctor", "--json")
    findings = json.loads(done.stdout)
    assert done.returncode == 1
    assert findings["usable"] is False
    assert set(findings["rungs"]) == set(doctor.RUNGS)


def test_the_table_for_people_names_every_rung(terrace):
    pytest.importorskip("rich")
    printed = terrace("doctor").stdout
    assert all(f"forced {rung}" in printed for rung in doctor.RUNGS)
    assert "Programs do not run on Terrace here" in printed
