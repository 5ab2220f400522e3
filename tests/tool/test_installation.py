# SPDX-License-Identifier: MIT OR Apache-2.0
"""The tool away from its checkout: pip's console script, and where it looks for the library."""

import os
import shutil
import subprocess
import sys

import pytest
from terrace import library
from terrace.errors import TerraceError

from conftest import ROOT, harmless_library


@pytest.fixture
def nothing_installed(monkeypatch, tmp_path):
    monkeypatch.setattr(library, "_standard_directories", lambda: iter([tmp_path / "lib"]))
    monkeypatch.setenv("PKG_CONFIG", str(tmp_path / "no-pkg-config"))
    (tmp_path / "lib").mkdir()
    return tmp_path


@pytest.mark.usefixtures("nothing_installed")
def test_a_missing_library_is_an_error_that_names_the_ways_to_give_one():
    with pytest.raises(TerraceError, match="TERRACE_LIBRARY"):
        library.installed_library()


@pytest.mark.parametrize("name", ["libterrace.so", "libterrace.so.0"])
def test_a_standard_directory_is_enough(nothing_installed, name):
    (nothing_installed / "lib" / name).touch()
    assert library.installed_library().name == name


def test_pkg_config_comes_before_the_standard_directories(nothing_installed, script, monkeypatch):
    (nothing_installed / "lib" / "libterrace.so").touch()
    (nothing_installed / "libterrace.so").touch()
    answer = script("pkg-config", f"#!/bin/sh\necho {nothing_installed}\n")
    monkeypatch.setenv("PKG_CONFIG", str(answer))
    assert library.installed_library() == nothing_installed / "libterrace.so"


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The package as pip installs it, from a copy: building writes beside the sources."""
    pytest.importorskip("setuptools", minversion="70.1")
    pytest.importorskip("rich")
    directory = tmp_path_factory.mktemp("installed")
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "tools", directory / "source", ignore=ignore)
    options = ("--quiet", "--no-deps", "--no-build-isolation", "--disable-pip-version-check")
    command = [sys.executable, "-m", "pip", "install", *options, "--target", str(directory / "lib")]
    done = subprocess.run(
        [*command, str(directory / "source")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return directory / "lib"


def run(installed, *arguments: str, **variables: str):
    environment = {**os.environ, "PYTHONPATH": str(installed), **variables}
    return subprocess.run(
        [str(installed / "bin" / "terrace"), *arguments],
        env=environment, capture_output=True, text=True, cwd="/", timeout=60, check=False,
    )  # fmt: skip


def test_the_console_script_runs_a_program_under_the_named_library(installed):
    done = run(
        installed, "run", "--", "sh", "-c", "echo out; exit 3", TERRACE_LIBRARY=harmless_library()
    )
    assert (done.returncode, done.stdout) == (3, "out\n")
    assert "no statistics" in done.stderr


def test_a_named_library_that_does_not_exist_is_an_error(installed):
    done = run(installed, "run", "--", "true", TERRACE_LIBRARY="/no/such/library.so")
    assert done.returncode == 1
    assert done.stderr == "terrace: TERRACE_LIBRARY=/no/such/library.so: there is no such file\n"


@pytest.mark.parametrize("subcommand", ["test", "bench"])
def test_what_needs_the_sources_says_so(installed, subcommand):
    done = run(installed, subcommand)
    assert done.returncode == 1
    assert "needs a checkout" in done.stderr


def test_the_list_of_packages_is_installed_too(installed):
    assert (installed / "terrace" / "packages.txt").is_file()
