# SPDX-License-Identifier: MIT OR Apache-2.0
"""Building with a fake CMake: when it is called, with what, and what becomes of failures."""

import os

import pytest
from terrace import build, cli, library, prepare
from terrace.checkout import Checkout
from terrace.errors import TerraceError

CMAKE = """#!/bin/sh
echo "$@" >> {root}/log
case $1 in
  --preset)
    mkdir -p {root}/build/$2
    touch {root}/build/$2/build.ninja
    echo "CMAKE_HOME_DIRECTORY:INTERNAL={root}" > {root}/build/$2/CMakeCache.txt ;;
  --build)
    echo "[1/2] Building CXX object a.o"
    if [ -e {root}/broken ]; then echo "FAILED: a.o"; echo "a.cpp:1: error: no"; exit 1; fi
    echo "[2/2] Linking libterrace.so"
    touch $2/libterrace.so ;;
esac
"""


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    root = tmp_path / "checkout"
    (root / "src" / "base").mkdir(parents=True)
    (root / "src" / "base" / "bits.h").write_text("1")
    (root / "CMakeLists.txt").write_text("")
    (root / "CMakePresets.json").write_text("{}")
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "cmake").write_text(CMAKE.format(root=root))
    (programs / "cmake").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    return Checkout(root)


def log(checkout: Checkout) -> list[str]:
    return (checkout.root / "log").read_text().splitlines()


def test_the_first_build_configures_without_tests_and_builds_only_the_library(checkout):
    assert build.build_library(checkout) == checkout.library
    configured, built = log(checkout)
    assert configured == "--preset release -DTERRACE_TESTS=OFF -DTERRACE_BENCH=OFF"
    assert built.endswith("--target terrace_shared")
    assert build.is_up_to_date(checkout)


def test_nothing_is_called_while_the_sources_are_the_same(checkout):
    build.build_library(checkout)
    (checkout.root / "README.md").write_text("no source")
    build.build_library(checkout)
    assert len(log(checkout)) == 2


@pytest.mark.parametrize("change", ["edit", "add", "remove", "preset"])
def test_a_changed_source_builds_again_without_configuring(checkout, change):
    build.build_library(checkout)
    source = checkout.root / "src" / "base" / "bits.h"
    if change == "edit":
        source.write_text("22")
    elif change == "add":
        source.with_name("new.h").write_text("")
    elif change == "remove":
        source.unlink()
    else:
        os.utime(checkout.root / "CMakePresets.json", (1, 1))
    assert not build.is_up_to_date(checkout)
    build.build_library(checkout)
    assert [line.split()[0] for line in log(checkout)] == ["--preset", "--build", "--build"]


def test_a_library_that_was_deleted_is_built_again(checkout):
    build.build_library(checkout)
    checkout.library.unlink()
    assert not build.is_up_to_date(checkout)


def test_a_failed_build_shows_the_compilers_words_and_is_tried_again(checkout):
    (checkout.root / "broken").touch()
    with pytest.raises(TerraceError) as error:
        build.build_library(checkout)
    assert "FAILED: a.o\na.cpp:1: error: no" in str(error.value)
    assert "Building CXX" not in str(error.value)
    assert not build.is_up_to_date(checkout)
    (checkout.root / "broken").unlink()
    build.build_library(checkout)
    assert build.is_up_to_date(checkout)


def test_a_build_directory_of_a_moved_checkout_is_configured_afresh(checkout):
    build.build_library(checkout)
    cache = checkout.build / "release" / "CMakeCache.txt"
    cache.write_text("CMAKE_HOME_DIRECTORY:INTERNAL=/somewhere/else\n")
    checkout.library.unlink()
    build.build_library(checkout)
    assert "--fresh" in log(checkout)[2]


def test_building_the_whole_release_preset_makes_the_library_up_to_date_too(checkout):
    build.build_preset(checkout, "release", {"TERRACE_TESTS": "ON"})
    assert log(checkout)[0] == "--preset release -DTERRACE_TESTS=ON"
    assert build.is_up_to_date(checkout)


def test_progress_is_silent_when_asked_and_speaks_in_quarters_otherwise(
    checkout, capsys, monkeypatch
):
    build.build_library(checkout)
    assert "100 %" in capsys.readouterr().err
    monkeypatch.setattr("terrace.messages.quiet", True)
    checkout.library.unlink()
    build.build_library(checkout)
    assert capsys.readouterr().err == ""


def test_a_failed_build_does_not_say_100_percent(checkout, capsys):
    (checkout.root / "broken").touch()
    with pytest.raises(TerraceError):
        build.build_library(checkout)
    assert "100 %" not in capsys.readouterr().err


def test_a_checkout_that_can_not_be_written_is_one_clear_line(checkout, monkeypatch, capsys):
    (checkout.root / "build").write_text("in the way")
    monkeypatch.setattr("terrace.cli.find_checkout", lambda: checkout)
    monkeypatch.delenv("TERRACE_LIBRARY", raising=False)
    assert cli.main(["run", "--", "true"]) == 1
    assert capsys.readouterr().err == (
        f"terrace: {checkout.root}/build can not be written (File exists): use a checkout of your "
        "own, or set TERRACE_LIBRARY to a library that is built already\n"
    )


def test_a_named_library_demands_no_compiler(checkout, monkeypatch, tmp_path):
    def prepare(*_):
        raise AssertionError("installs")

    named = tmp_path / "libterrace.so"
    named.touch()
    monkeypatch.setattr("terrace.prepare.prepare", prepare)
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    monkeypatch.setenv("TERRACE_LIBRARY", str(named))
    assert library.find_library(checkout) == named


@pytest.fixture
def no_index(checkout, monkeypatch):
    """A checkout where pip finds nothing; the list notes each attempt."""
    attempts = []

    def ensure(_checkout, extras):
        attempts.append(extras)
        raise TerraceError("pip could not install rich (is the network there?)\nlong text")

    (checkout.root / "tools" / "requirements").mkdir(parents=True)
    (checkout.requirements / "run.txt").write_text("rich>=13\n")
    monkeypatch.delenv("TERRACE_LIBRARY", raising=False)
    monkeypatch.setattr("terrace.venv.ensure_extras", ensure)
    monkeypatch.setattr("terrace.packages.install", lambda *_: ())
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    return attempts


def test_without_a_package_index_run_goes_on_and_asks_once(checkout, no_index, capsys):
    assert library.find_library(checkout) == checkout.library
    assert "going on without rich, tables are plain: pip could not" in capsys.readouterr().err
    (checkout.root / "src" / "base" / "bits.h").write_text("22")
    assert library.find_library(checkout) == checkout.library
    assert no_index == [("run",)]


def test_what_else_is_needed_from_a_package_index_is_an_error(checkout, no_index):
    with pytest.raises(TerraceError, match="pip could not"):
        prepare.prepare(checkout, ("test",), ("test",))
    assert no_index == [("run", "test")]
