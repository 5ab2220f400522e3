# SPDX-License-Identifier: MIT OR Apache-2.0
"""`terrace test vm`: what is planned, what is asked of apt and qemu, how a console is read."""

from pathlib import Path

import pytest
from terrace import download
from terrace.vm import command as vm
from terrace.vm import archive as vm_archive
from terrace.vm import images as vm_images
from terrace.vm import page as vm_page
from terrace.vm import qemu as vm_qemu
from terrace.vm import results as vm_results
from terrace.vm import rows as vm_rows
from terrace.vm import tests as vm_tests
from terrace.errors import TerraceError
from terrace.vm.results import MARK
from terrace.vm.rows import FOUR, ONE, TWO_SOCKETS, Row
from conftest import ROOT
from vm_support import ALL, BUILD, MACHINE, ROW, console, listed, read, result, stresses

# ---- the matrix


def test_rows_have_names_of_their_own():
    assert len({row.name for row in vm_rows.ROWS}) == len(vm_rows.ROWS)


def test_what_must_be_tried_is_in_the_matrix():
    tried = {(r.kernel, r.libc, r.isa) for r in vm_rows.ROWS}
    for isa in ("x86_64", "aarch64"):
        for kernel, libc in (("newest", "trixie"), ("newest", "bookworm"), ("trixie", "trixie")):
            assert (kernel, libc, isa) in tried
        assert ("bookworm", "bookworm", isa) in tried
    assert {r.machine.cpus for r in vm_rows.ROWS} >= {1, 4, 16}
    assert TWO_SOCKETS in {r.machine for r in vm_rows.ROWS}


def test_rows_are_chosen_by_name():
    assert [r.name for r in vm_rows.choose("aarch64.newest.*16")] == [
        "aarch64.newest.trixie.16-cpus"
    ]
    for wrong in ("nosuch", "("):
        with pytest.raises(TerraceError) as error:
            vm_rows.choose(wrong)
        assert error.value.status == 2


# ---- the archive


def test_the_mirror_is_the_hosts_but_not_that_of_security_or_others():
    text = (
        "https://elsewhere/apt Other bookworm main\n"
        "http://mirror/debian-security/ Debian bookworm-security main\n"
        "http://mirror/debian/ Debian bookworm contrib\n"
        "http://mirror/debian/ Debian bookworm main\n"
    )
    assert download.mirror_among(text) == "http://mirror/debian"
    assert download.mirror_among("") is None


def test_backports_stand_on_their_suite():
    lines = vm_archive.sources("trixie-backports", "http://m/debian").splitlines()
    assert [line.split()[-2] for line in lines] == ["trixie-backports", "trixie"]
    assert len(vm_archive.sources("sid", "http://m/debian").splitlines()) == 1


def test_a_simulation_of_apt_is_read():
    text = "Inst linux-binary-7.3 (7.3-1 Debian:sid [amd64])\nConf linux-binary-7.3 (7.3-1 x)\n"
    assert vm_archive.installed_by(text) == {"linux-binary-7.3": "7.3-1"}


def test_a_candidate_is_older_than_its_release():
    versions = {"sid": "7.2.13-1", "experimental": "7.3~rc7-1~exp1", "backports": "7.3-1~bpo1"}
    assert vm_archive.newest(versions) == "backports"
    assert vm_archive.newest({**versions, "sid": "7.10-1"}) == "sid"


def test_what_fails_is_one_line_for_people():
    with pytest.raises(TerraceError, match="no-such-command"):
        vm_archive.run_tool(["no-such-command"])
    with pytest.raises(TerraceError, match="oh"):
        vm_archive.run_tool(["sh", "-c", "echo oh; exit 3"])


# ---- images


def test_the_kernel_is_found_in_old_and_new_packages(tmp_path):
    new = tmp_path / "usr/lib/modules/7.3-amd64"
    new.mkdir(parents=True)
    (new / "vmlinuz").touch()
    assert vm_images.find_image(tmp_path, "sid") == (new / "vmlinuz", "7.3-amd64")
    (tmp_path / "boot").mkdir()
    (tmp_path / "boot/vmlinuz-6.1").touch()
    assert vm_images.find_image(tmp_path, "sid")[1] == "6.1"
    with pytest.raises(TerraceError, match="no kernel"):
        vm_images.find_image(tmp_path / "usr", "sid")


def test_the_version_of_libc_is_that_of_its_package():
    assert vm_images.libc_version([Path("a_1.deb"), Path("libc6_2.41-12+b1_amd64.deb")]) == "2.41"


def test_a_self_extracting_image_is_unpacked():
    import gzip

    inner = gzip.compress(b"kernel")
    header = b"MZ\0\0zimg" + (64).to_bytes(4, "little") + len(inner).to_bytes(4, "little")
    image = header.ljust(24, b"\0") + b"gzip".ljust(40, b"\0") + inner + b"rest"
    assert vm_images.bootable(image) == b"kernel"
    assert vm_images.bootable(b"plain image") == b"plain image"


def test_archives_are_joined_at_multiples_of_four(tmp_path):
    for name, text in (("a", b"12345"), ("b", b"67")):
        (tmp_path / name).write_bytes(text)
    vm_images.join([tmp_path / "a", tmp_path / "b"], tmp_path / "c")
    assert (tmp_path / "c").read_bytes() == b"12345\0\0\0" + b"67\0\0"


# ---- tests


def test_tests_run_in_the_guest_as_ctest_would_run_them():
    program = f"{BUILD}/tests/stress/stress"
    listing = {
        "tests": [
            listed("models.slow", ["spin"]),
            listed("env.under_valgrind", ["/usr/bin/python3", "driver.py"]),
            listed("stress.not_built_NOT_BUILT", []) | {"command": None},
            listed(
                "stress.mm_cid.storm",
                [
                    "/usr/bin/qemu-aarch64",
                    "-L",
                    "/usr/aarch64-linux-gnu",
                    program,
                    "--seconds",
                    "3",
                ],
                ENVIRONMENT=["LD_PRELOAD=/w/l.so", "TERRACE_PLACEMENT=random:0.5"],
                SKIP_RETURN_CODE=77,
                TIMEOUT=100.0,
                WORKING_DIRECTORY="/w",
            ),
            listed(
                "env.signals",
                ["/usr/bin/qemu-aarch64", "/opt/venv/bin/python3.11", "/w/driver.py", f"{BUILD}/x"],
            ),
        ]
    }
    del listing["tests"][2]["command"]
    storm, signals = vm_tests.read_tests(listing, BUILD, ALL)
    assert storm.command[:2] == [program, "--seconds"]
    assert float(storm.command[2]) > 3
    assert storm.environment == {
        "TERRACE_TEST_TIMEOUT": "480",
        "LD_PRELOAD": "/w/l.so",
        "TERRACE_PLACEMENT": "random:0.5",
    }
    assert (storm.skip_status, storm.timeout) == (77, 100 * vm_tests.SLOWER)
    assert signals.command == ["/usr/bin/python3", "/w/driver.py", f"{BUILD}/x"]


def test_scripts_whose_programs_were_not_compiled_are_left_out():
    listing = {"tests": [listed("env.signals", ["python3", "x"]), listed("inject.delays", ["y"])]}
    (only,) = vm_tests.read_tests(listing, BUILD, vm_tests.FOLDERS["inject"])
    assert only.name == "inject.delays"


def test_files_of_a_guest_are_programs_and_scripts_of_its_tests(tmp_path):
    build = tmp_path / "build"
    for name in ("build/tests/unit", "build/tests/lab", "tests/unit"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("build/libterrace.so.0", "build/tests/unit/a", "build/tests/lab/b"):
        (tmp_path / name).write_bytes(b"\x7fELF")
    (build / "tests/unit/notes.txt").touch()
    (tmp_path / "tests/unit/driver.py").touch()
    names = {p.name for p in vm_tests.guest_files(tmp_path, build, ("unit",))}
    assert names == {"libterrace.so.0", "a", "driver.py"}


def test_cpus_are_unplugged_where_there_are_several():
    many = vm.make_plan(ROW, stresses(), 60)
    one = vm.make_plan(Row("sid", "sid", "x86_64", ONE), stresses(), 60)
    assert sum(bool(t.get("unplug")) for t in many["tests"]) == 4
    assert not any(t.get("unplug") for t in one["tests"])


def test_what_depends_most_on_the_machine_comes_first():
    names = [t["name"] for t in vm.make_plan(ROW, stresses(), 60)["tests"]]
    assert names[0] == "vm.traffic"
    unplugged = names.index("unplug.stress.mm_cid.calm")
    assert unplugged < names.index("unit.Balance.x") < names.index("stress.getcpu.calm")


def test_the_guest_is_told_what_machine_it_must_find():
    row = Row("newest", "trixie", "x86_64", TWO_SOCKETS)
    expected = {"cpus": 8, "nodes": 2, "last_level_caches": 4}
    assert vm.make_plan(row, [], 60)["expect"] == expected
    arm = Row("newest", "trixie", "aarch64", FOUR)
    assert "last_level_caches" not in vm.make_plan(arm, [], 60)["expect"]


# ---- qemu


def test_two_sockets_have_two_nodes_and_dies_with_a_cache():
    row = Row("newest", "trixie", "x86_64", TWO_SOCKETS)
    words = " ".join(vm_qemu.command(row, Path("k"), Path("r")))
    assert "-smp 8,sockets=2,cores=2,threads=1,dies=2" in words
    assert "node,nodeid=0,cpus=0-3" in words
    assert "node,nodeid=1,cpus=4-7" in words
    assert "-numa" not in vm_qemu.command(ROW, Path("k"), Path("r"))


def test_a_guest_that_does_not_end_is_ended(tmp_path):
    seen = []
    assert not vm_qemu.run(["sh", "-c", "echo a; sleep 60"], tmp_path / "c", 2, seen.append)
    assert "".join(seen) == "a\n"
    assert vm_qemu.run(["echo", "b"], tmp_path / "c", 30, seen.append)
    assert (tmp_path / "c").read_text() == "b\n"


# ---- results


def test_a_guest_passes_only_with_all_its_results():
    ended = {"kind": "end"}
    whole = [MACHINE, result("a"), result("b"), ended]
    assert read(console(*whole)).verdict == "passed"
    assert read(console(*whole), planned=3).verdict == "passed; 1 not run"
    assert read(console(MACHINE, result("a", "failed"), result("b"), ended)).verdict == "failed"
    started = {"kind": "start", "test": "b"}
    assert read(console(MACHINE, result("a"), started)).verdict == "stopped in b"
    assert read("Kernel panic - not syncing\n").verdict == "did not boot"


def test_a_line_that_the_kernel_wrote_into_is_no_result():
    broken = f'{MARK}{{"kind": "result", "test": "b[ 12.3] panic'
    outcome = read(console(MACHINE, result("a"), {"kind": "end"}) + broken)
    assert outcome.verdict == "passed; 1 not run"
    assert vm_results.read_line("@terrace-vm 7") is None


def test_reports_are_found_behind_other_output():
    assert vm_results.read_line("\r[ 1.2] boot " + console(MACHINE)) == MACHINE


def test_what_the_oracle_watched_is_added_up():
    line = "stress: mm_cid: 120 operations, 3 threads: nothing wrong\n"
    reports = [result(f"stress.{name}") | {"output": line} for name in ("a", "b")]
    assert read(console(*reports, result("env.c") | {"output": line})).operations == 240


def test_outcomes_are_kept(tmp_path):
    outcome = read(console(MACHINE, result("a", "failed", "status 1")))
    vm_results.save(outcome, tmp_path)
    assert vm_results.load(tmp_path) == {ROW.name: outcome}


OTHER = Row("sid", "sid", "x86_64", FOUR)


def failed_outcome():
    rung = {"kind": "rung", "rung": "cpu_id", "reason": ""}
    bad = result("a", "failed", "status 1")
    return read(console(MACHINE, rung, bad, result("b"), {"kind": "end"}))


def test_the_page_names_what_failed_and_what_was_not_run():
    text = vm_page.page([ROW, OTHER], {ROW.name: failed_outcome()}, "")
    assert f"| `{ROW.name}` | 7.3 | 2.41 | cpu_id | 1 | 1 | 0 | failed | - | 0 |" in text
    assert f"- `{ROW.name}`: `a`: status 1" in text
    assert f"| `{OTHER.name}` |  |  |  |  |  |  | not run |" in text
    assert {line.count("|") for line in text.splitlines() if line.startswith("|")} == {14}


def test_the_page_tells_what_was_foreign_between_caches():
    line = "from CPU 0 to CPU {}: 17 magazines put into depots, {} blocks taken out, {} foreign\n"
    near = result("vm.traffic_on_cpu_id") | {"output": line.format(1, 1000, 0)}
    far = near | {"output": near["output"] + line.format(4, 1100, 1050) + line.format(6, 900, 900)}
    for what, told in ((near, "| one cache |"), (far, "| 1,950 of 2,000 |")):
        assert told in vm_page.page([ROW], {ROW.name: read(console(MACHINE, what))}, "")


def test_the_page_keeps_what_another_machine_ran():
    earlier = "By hand.\n\n" + vm_page.page([ROW, OTHER], {ROW.name: failed_outcome()}, "")
    passed = read(console(MACHINE, result("a"), result("b"), {"kind": "end"}))
    text = vm_page.page([ROW, OTHER], {OTHER.name: passed}, earlier)
    assert f"- `{ROW.name}`: `a`: status 1" in text
    assert f"| `{ROW.name}` | 7.3 | 2.41 | cpu_id | 1 | 1 | 0 | failed |" in text
    assert "not run |" not in text
    assert text.startswith("By hand.\n\n| guest |")
    again = vm_page.page([ROW, OTHER], {ROW.name: passed}, text)
    assert "status 1" not in again


def test_the_page_names_the_guests_that_have_all_tests():
    said = " ".join((ROOT / "docs/guide/kernels.md").read_text("utf-8").partition("| guest |")[0].split())
    full = [f"`{row.name}`" for row in vm_rows.ROWS if not row.brief]
    assert f"on {', '.join(full[:-1])} and {full[-1]} also the API" in said
