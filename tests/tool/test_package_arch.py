# SPDX-License-Identifier: MIT OR Apache-2.0
"""Packages for another architecture: what the cross compiler is asked for, where they are tried."""

import argparse
import json
import platform

import pytest
from conftest import ROOT
from terrace.checkout import Checkout
from terrace.errors import TerraceError
from terrace.package import command, roots, trying
from terrace.package.making import Source, source_for


@pytest.fixture
def other(monkeypatch):
    """As on x86-64, whatever this machine is."""
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    return source_for(Checkout(ROOT), "aarch64")


def test_the_other_architecture_has_a_preset_with_a_toolchain(other):
    presets = json.loads((ROOT / "CMakePresets.json").read_text())["configurePresets"]
    (preset,) = (p for p in presets if p["name"] == other.built.name)
    assert preset["inherits"] == "release"
    assert (ROOT / preset["toolchainFile"].removeprefix("${sourceDir}/")).exists()
    assert (other.arch, other.is_cross, other.strip) == ("arm64", True, "aarch64-linux-gnu-strip")


def test_this_architecture_has_its_own_tools(other):
    native = Source(other.root, other.built, "x86_64")
    assert (native.arch, native.is_cross, native.strip) == ("amd64", False, "strip")


@pytest.mark.usefixtures("other")
@pytest.mark.parametrize("kind", ["rpm", "crate"])
def test_a_kind_without_a_cross_compiler_is_refused(kind):
    options = argparse.Namespace(kind=kind, arch="arm64", check=False)
    with pytest.raises(TerraceError, match=f"package {kind}: not for another architecture"):
        command.run(options, Checkout(ROOT))


def test_ubuntu_is_left_out_without_its_keys_and_said(other, tmp_path, monkeypatch, capsys):
    native = Source(other.root, other.built, "x86_64")
    monkeypatch.setattr(roots, "UBUNTU_KEYS", tmp_path / "keys")
    assert list(roots.suites(native)) == ["bookworm", "trixie"]
    assert "not tried on Ubuntu" in capsys.readouterr().err
    (tmp_path / "keys").touch()
    assert list(roots.suites(native)) == ["bookworm", "trixie", "jammy", "noble"]
    assert list(roots.suites(other)) == ["bookworm"]


def test_a_suite_whose_archive_is_out_of_reach_is_left_out_and_said(tmp_path, monkeypatch, capsys):
    def make(_source, suite, _roots):
        if suite in unreachable:
            raise TerraceError(
                "mmdebstrap failed (25):\nE: apt-get update failed\nE: failed to run"
            )

    monkeypatch.setattr(trying, "suites", lambda _source: {"bookworm": "main", "noble": "main"})
    monkeypatch.setattr(trying, "full_archive", make)
    native = Source(ROOT, ROOT)
    unreachable = ["noble"]
    assert list(trying.available_suites(native, tmp_path)) == ["bookworm"]
    said = "terrace: not tried on noble: no root can be made: E: apt-get update failed\n"
    assert capsys.readouterr().err == said
    unreachable = ["bookworm"]
    with pytest.raises(TerraceError, match="mmdebstrap failed"):
        list(trying.available_suites(native, tmp_path))


def test_what_is_for_all_architectures_is_listed_once(tmp_path):
    made = [tmp_path / "deb/run_all.deb", tmp_path / "deb/lib_amd64.deb"]
    made += [tmp_path / "arm64/deb/run_all.deb", tmp_path / "arm64/deb/lib_arm64.deb"]
    for path in made:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(path.name)
    listed = [line.split("  ")[1] for line in command.write_sums(tmp_path, made).splitlines()]
    assert listed == ["deb/run_all.deb", "deb/lib_amd64.deb", "arm64/deb/lib_arm64.deb"]
    made[2].write_text("another")
    with pytest.raises(TerraceError, match="differ"):
        command.write_sums(tmp_path, made)
