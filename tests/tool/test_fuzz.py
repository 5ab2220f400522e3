# SPDX-License-Identifier: MIT OR Apache-2.0
"""`terrace fuzz`: which fuzzers there are, and how a finding ends."""

import pytest
from terrace import build, fuzz
from terrace.checkout import Checkout
from terrace.errors import TerraceError

FUZZER = """#!/bin/sh
echo "$*" > "$(dirname "$0")/arguments"
exit %d
"""


@pytest.fixture
def checkout(tmp_path, monkeypatch, script):
    for name in ("options", "api"):
        (tmp_path / "fuzz" / "corpus" / name).mkdir(parents=True)
    monkeypatch.setattr(build, "configure", lambda *_: None)
    monkeypatch.setattr(build, "compile_targets", lambda *_: None)
    monkeypatch.setenv("PATH", f"{script('clang++', 'exit 0').parent}:/usr/bin:/bin")
    return Checkout(tmp_path)


def put_fuzzer(checkout, status):
    program = checkout.build / fuzz.PRESET / "fuzz" / "fuzz_api"
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(FUZZER % status)
    program.chmod(0o755)
    return program


def test_the_fuzzers_are_the_corpora(checkout):
    assert fuzz.names(checkout) == ["api", "options"]


def test_an_unknown_fuzzer_is_refused(checkout):
    with pytest.raises(TerraceError, match="no fuzzer nosuch; there are: api options"):
        fuzz.fuzz(checkout, "nosuch", 1)


def test_a_fuzzer_gets_its_time_and_both_corpora(checkout):
    program = put_fuzzer(checkout, 0)
    assert fuzz.fuzz(checkout, "api", 7) == 0
    words = (program.parent / "arguments").read_text().split()
    assert "-max_total_time=7" in words
    assert words[-2:] == [
        str(checkout.build / fuzz.PRESET / "corpus" / "api"),
        str(checkout.root / "fuzz" / "corpus" / "api"),
    ]


def test_a_finding_is_told(checkout, capfd):
    put_fuzzer(checkout, 77)
    assert fuzz.fuzz(checkout, "api", 1) == 1
    assert "found a fault" in capfd.readouterr().err
