# SPDX-License-Identifier: MIT OR Apache-2.0
"""The spec that rpmbuild gets: packages, version, changes. `./terrace package rpm --check` builds and uses them."""

import shutil
import subprocess

import pytest
from conftest import ROOT
from terrace.package import rpm
from terrace.package.making import Source


@pytest.mark.skipif(not shutil.which("rpmspec"), reason="no rpm")
def test_rpm_reads_the_spec(tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    source = Source(ROOT, ROOT)
    spec = tmp_path / "terrace.spec"
    spec.write_text(rpm._spec(source))
    shown = "%{name} %{version} %{arch} [%{changelogtext}]\n"
    command = ["rpmspec", "-q", "--builtrpms", "--define", "terrace_version 1.2.3", "--qf", shown, spec]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    lines = sorted(done.stdout.splitlines())
    assert [line.split()[0] for line in lines] == [
        "libumem", "terrace-devel", "terrace-libs", "terrace-tools"
    ]  # fmt: skip
    assert all(" 1.2.3 " in line and "See CHANGELOG.md" in line for line in lines)
    assert " noarch " in lines[3]
