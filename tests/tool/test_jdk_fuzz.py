# SPDX-License-Identifier: MIT OR Apache-2.0
"""`terrace jdk test --suite fuzz`: what a setting prints otherwise is told, with the seeds."""

import dataclasses

import pytest
from test_jdk_suites import put_java

from terrace.jdk import fuzz as jdk_fuzz
from terrace.jdk import programs as jdk_test
from terrace.checkout import Checkout
from terrace.jdk.session import STOCK, Session


def session(directory, with_buffers=":"):
    """Of which the patched java does `with_buffers` where it has the buffers' flag."""
    stock, image = put_java(directory / "stock"), put_java(directory / "image", with_buffers)
    return Session(Checkout(directory), stock, image, seconds=0)


@pytest.mark.parametrize(
    ("with_buffers", "status", "told"),
    [
        (":", 0, f"{len(jdk_fuzz.SETTINGS)} passed, 0 unlike"),
        ("echo 41; exit 0", 1, "instead of"),
        ("exit 134", 1, "134"),
    ],
)
def test_the_fuzzer_compares_each_setting_and_tells_which_programs(
    monkeypatch, tmp_path, capsys, with_buffers, status, told
):
    monkeypatch.setenv("TERRACE_JDK_DIR", str(tmp_path / "jdk"))
    monkeypatch.setattr(jdk_fuzz, "compile_programs", lambda *_: tmp_path)
    suite = jdk_fuzz.run(session(tmp_path, with_buffers))
    assert suite.status == status
    assert list(suite.results) == [STOCK, *(each.name for each in jdk_fuzz.SETTINGS)]
    assert suite.notes[0].startswith("by thread: 5 programs, from seed 0 on, in ")
    out = capsys.readouterr().out
    assert told in out
    assert (": Ways 0 5" in out) == (status == 1)


def test_the_fuzzer_begins_where_it_is_told(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("TERRACE_JDK_DIR", str(tmp_path / "jdk"))
    monkeypatch.setattr(jdk_fuzz, "compile_programs", lambda *_: tmp_path)
    made = dataclasses.replace(session(tmp_path, "exit 134"), first=8)
    suite = jdk_fuzz.run(made)
    assert jdk_fuzz.batch(8)[0] in suite.results["flip"]
    assert suite.notes[0].startswith("by thread: 5 programs, from seed 40 on, in ")
    assert ": Ways 40 5" in capsys.readouterr().out


def test_a_fuzzer_whose_programs_fail_on_the_installed_jdk_passes_nothing(monkeypatch, tmp_path):
    monkeypatch.setenv("TERRACE_JDK_DIR", str(tmp_path / "jdk"))
    monkeypatch.setattr(jdk_fuzz, "compile_programs", lambda *_: tmp_path)
    made = session(tmp_path)
    (made.stock / "bin" / "java").write_text("#!/bin/sh\nexit 3\n")
    assert jdk_fuzz.run(made).status == 1


def test_the_fuzzer_comes_to_all_collectors_compilers_and_layouts():
    names = {part for number in range(200) for part in jdk_fuzz.batch(number)[0].split(", ")}
    assert names == {*jdk_test.COLLECTORS, *jdk_fuzz.COMPILERS, *jdk_fuzz.LAYOUTS}
    assert jdk_fuzz.batch(7) == jdk_fuzz.batch(7)
