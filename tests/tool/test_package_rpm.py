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

    def said(which, shown):
        defined = ["--define", "terrace_version 1.2.3"]
        command = ["rpmspec", "-q", which, *defined, "--qf", shown, str(spec)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        return sorted(done.stdout.splitlines())

    architecture = said("--srpm", "%{arch}")[0]
    assert said("--builtrpms", "%{name} %{version} %{arch}\n") == [
        f"libumem 1.2.3 {architecture}",
        f"terrace-devel 1.2.3 {architecture}",
        f"terrace-libs 1.2.3 {architecture}",
        "terrace-tools 1.2.3 noarch",
    ]
    assert said("--srpm", "[%{changelogtext}]") == ["- See CHANGELOG.md."]
