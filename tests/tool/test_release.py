# SPDX-License-Identifier: MIT OR Apache-2.0
"""`terrace release --check`: each step finds what is wrong; the list of contents is valid SPDX."""

import shutil
import subprocess
import sys

import pytest
from conftest import ROOT
from terrace.errors import TerraceError
from terrace.package.making import Source
from terrace.release import command, sbom, steps

NAMES = (
    "CHANGELOG.md",
    "CMakeLists.txt",
    "include/terrace/version.h",
    "integrations/rust/Cargo.toml",
    "meson.build",
    "packaging/vcpkg/vcpkg.json",
    "tools/terrace/__init__.py",
)


@pytest.fixture
def source(tmp_path):
    """Copies of the files that say a version."""
    for name in NAMES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return Source(tmp_path, tmp_path)


def change(source, name, old, new):
    text = (source.root / name).read_text()
    assert old in text
    (source.root / name).write_text(text.replace(old, new, 1))


def test_all_places_have_the_version_of_cmake(source):
    assert steps.version(source) == source.version


@pytest.mark.parametrize("name", NAMES[1:])
def test_a_place_with_another_version_is_named(source, name):
    if name.endswith(".h"):
        change(source, name, "VERSION_PATCH 0", "VERSION_PATCH 7")
    else:
        change(source, name, source.version, "0.1.7")
    with pytest.raises(TerraceError, match=r"has 0\.1\.\d, but .* has 0\.1\.\d"):
        steps.version(source)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("## {} - 2027-01-31\n\n- It is faster.\n", None),
        ("## {} - unreleased\n\n- It is faster.\n", "has no date, but 'unreleased'"),
        ("## {} - 2027-01-31\n\n## 0.0.1 - 2026-01-01\n- It began.\n", "says nothing of"),
        ("## 9.9.9 - 2027-01-31\n\n- It is faster.\n", "no heading '## "),
    ],
)
def test_the_changelog_has_a_dated_entry(source, text, problem):
    (source.root / "CHANGELOG.md").write_text(text.format(source.version))
    if problem is None:
        assert steps.changelog(source) == f"{source.version} of 2027-01-31"
    else:
        with pytest.raises(TerraceError, match=problem):
            steps.changelog(source)


def test_what_is_not_committed_is_named(tmp_path):
    def git(*words):
        identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        subprocess.run(["git", *identity, *words], cwd=tmp_path, check=True, capture_output=True)

    git("init")
    git("commit", "--allow-empty", "--message=first")
    source = Source(tmp_path, tmp_path)
    assert len(steps.committed(source)) == 40
    (tmp_path / "left").touch()
    with pytest.raises(TerraceError, match="not committed: left"):
        steps.committed(source)


def test_every_file_of_the_checkout_has_a_licence():
    pytest.importorskip("reuse")
    assert "MIT" in steps.licences(Source(ROOT, ROOT))


def test_a_licence_without_its_text_is_told(tmp_path):
    pytest.importorskip("reuse")
    tag = "SPDX-" + "License-Identifier: Zlib"
    (tmp_path / "file.py").write_text(f"# SPDX-FileCopyrightText: 2026 A\n# {tag}\n")
    with pytest.raises(TerraceError, match="Missing licenses: Zlib"):
        steps.licences(Source(tmp_path, tmp_path))


def test_the_contents_are_valid_spdx(tmp_path, monkeypatch):
    pytest.importorskip("spdx_tools")
    from spdx_tools.spdx.parser.parse_anything import parse_file
    from spdx_tools.spdx.validation.document_validator import validate_full_spdx_document

    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    (tmp_path / "SHA256SUMS").write_text(f"{'0' * 64}  tar/terrace.tar.gz\n")
    source = Source(ROOT, ROOT)
    sbom.write(source, tmp_path)
    document = parse_file(str(tmp_path / f"terrace-{source.version}.spdx.json"))
    assert validate_full_spdx_document(document) == []
    packages = {package.name: package for package in document.packages}
    assert {"terrace", "d3-flame-graph", "d3-selection", "rich"} <= set(packages)
    assert packages["tar/terrace.tar.gz"].checksums[0].value == "0" * 64


def test_a_failure_is_one_line_and_status_1(capsys):
    def fails():
        raise TerraceError("made twice,\nthese differ")

    assert command.check_all(iter([("first", lambda: "there")])) == 0
    assert command.check_all(iter([("first", fails), ("second", lambda: "there")])) == 1
    lines = capsys.readouterr().out.splitlines()[1:]
    assert lines == ["first        FAILED  made twice, these differ", "second       ok      there"]


def test_without_check_nothing_is_done():
    done = subprocess.run(
        [sys.executable, "-I", ROOT / "tools/terrace/__main__.py", "release"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "--check" in done.stderr
