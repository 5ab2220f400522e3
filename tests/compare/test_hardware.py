# SPDX-License-Identifier: MIT OR Apache-2.0
"""Every report names the machine: what the processor is called, on x86-64 and on arm64."""

import subprocess

import compare
import hardware
import pytest
from hardware import Processor, described
from report import Report

X86 = """processor\t: 0
vendor_id\t: AuthenticAMD
cpu family\t: 25
model\t\t: 17
model name\t: AMD EPYC 9R14
stepping\t: 1

processor\t: 1
model name\t: another
"""
ARM = "processor\t: 0\nCPU implementer\t: 0x41\nCPU variant\t: 0x3\nCPU part\t: 0xd0c\n"
LSCPU = "Architecture:  aarch64\nVendor ID:     ARM\nModel name:    Neoverse-N1\n"


@pytest.mark.parametrize(
    ("cpuinfo", "lscpu", "processor"),
    [
        (X86, "", Processor("AMD EPYC 9R14", "AuthenticAMD", "family 25, model 17, stepping 1")),
        (ARM, LSCPU, Processor("Neoverse-N1", "ARM", "implementer 0x41, part 0xd0c, variant 0x3")),
        (ARM, "Model name:  -\n", Processor("machine", "", "implementer 0x41, part 0xd0c, variant 0x3")),
        ("", "", Processor("machine")),
    ],
)
def test_a_processor_has_the_name_that_the_system_knows(cpuinfo, lscpu, processor, monkeypatch):
    monkeypatch.setattr("platform.machine", lambda: "machine")
    assert described(cpuinfo, lambda: lscpu) == processor


def test_a_report_says_first_where_it_was_measured(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(hardware, "processor", lambda: Processor("Name <of> it", "a vendor", "family 1"))
    monkeypatch.setattr(hardware, "cores", lambda: 1)
    Report("plain", tmp_path).close()
    Report("page", tmp_path, "A title").close()
    said = "Measured on Name <of> it (a vendor; family 1), 1 core, "
    assert (tmp_path / "plain.md").read_text().startswith(said)
    assert capsys.readouterr().out.startswith(said)
    assert said.replace("<", "&lt;").replace(">", "&gt;") in (tmp_path / "page.html").read_text()


def test_a_commit_is_that_of_the_checkout(tmp_path):
    assert hardware.commit(tmp_path / "absent") == ""
    git = ["git", "-C", str(tmp_path), "-c", "user.name=n", "-c", "user.email=e"]
    for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "first"], ["tag", "-a", "v1", "-m", "a tag is no commit"]):
        subprocess.run([*git, *words], check=True)
    (tmp_path / "file").write_text("1")
    head = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout
    assert len(hardware.commit(tmp_path)) == 10 and head.startswith(hardware.commit(tmp_path))
    subprocess.run([*git, "add", "file"], check=True)
    assert hardware.commit(tmp_path).endswith("+")


def test_only_the_library_that_was_built_here_is_of_this_commit(tmp_path, monkeypatch):
    monkeypatch.setattr(hardware, "commit", lambda _root: "abc")
    (tmp_path / "libterrace.so.1").touch()
    (tmp_path / "libterrace.so").symlink_to("libterrace.so.1")
    built = ["--build", str(tmp_path)]
    assert compare._commit(compare._options(built)) == "abc"
    assert compare._commit(compare._options([*built, "--library", str(tmp_path / "another.so")])) == ""
