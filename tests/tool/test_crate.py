# SPDX-License-Identifier: MIT OR Apache-2.0
"""The crates: what is packaged has all it needs, and passes its own tests where it is unpacked."""

import os
import shutil
import subprocess
import tarfile

import pytest
from conftest import ROOT
from terrace.errors import TerraceError
from terrace.package import crate
from terrace.package.making import Source
from terrace.packages import command_version

needs_cargo = pytest.mark.skipif(
    command_version("cargo") < crate.CARGO, reason="there is no cargo >= 1.90"
)
needs_git = pytest.mark.skipif(
    not (ROOT / ".git").exists() or not shutil.which("git"), reason="no git"
)


@needs_git
def test_another_version_than_the_librarys_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(Source, "version", "9.9.9")
    with pytest.raises(TerraceError, match=r"Cargo\.toml has version 0\.1\.0, CMake 9\.9\.9"):
        crate.bundle(Source(ROOT, ROOT), tmp_path)


def test_without_a_cargo_that_will_do_a_line_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(crate, "command_version", lambda _: (1, 63, 0))
    with pytest.raises(TerraceError, match=r"cargo >= 1\.90 is needed, there is 1\.63\.0"):
        crate.make(Source(ROOT, ROOT), tmp_path)


def cargo(folder, *words, **variables):
    environment = {**os.environ, "CARGO_PROFILE_DEV_DEBUG": "0", **variables}
    done = subprocess.run(
        ["cargo", *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=1500,
    )
    return done.returncode, done.stdout + done.stderr


@needs_git
@needs_cargo
def test_packaged_crates_pass_their_tests(tmp_path):
    """Nothing of the checkout is in reach of what is unpacked."""
    if cargo(ROOT / "integrations" / "rust", "fetch", "--locked")[0] != 0:
        pytest.skip("cargo can not fetch the crates cc and libc")
    for made in crate.make(Source(ROOT, ROOT), tmp_path / "made", verify=False):
        with tarfile.open(made) as archive:
            archive.extractall(tmp_path)
    sys_crate, own_crate = (tmp_path / f"{name}-0.1.0" for name in crate.NAMES)
    assert not (sys_crate / "native" / "src" / "lab").exists()
    patch = f"patch.crates-io.terrace-sys.path='{sys_crate}'"
    status, said = cargo(
        own_crate, "test", "--config", patch, CARGO_TARGET_DIR=str(tmp_path / "target")
    )
    assert status == 0, said
    passed = said.count("... ok")
    assert passed >= 25, said  # cache, cs, global and the examples of the documentation
