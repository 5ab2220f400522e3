# SPDX-License-Identifier: MIT OR Apache-2.0
"""`terrace jdk test --suite agent`: what jhsdb counts must be what the program says it keeps."""

import pytest
from conftest import ROOT
from terrace.jdk import agent as jdk_agent
from terrace.jdk import programs as jdk_test
from terrace.checkout import Checkout
from terrace.jdk.session import Session

PROGRAM = """#!/bin/sh
case "$*" in
*PrintFlagsFinal*) for f in UseTLAB ResizeTLAB TLABSize UnlockExperimentalVMOptions \\
  UseHierarchicalAllocBuffers HABLevels HABUseRestartableSequences HABAssociation; do
    echo "bool $f = true"
  done;;
*jmap*) cat "%s";; *-d*) ;;
*) printf 'Kept$Small 3\\nKept$Large 70\\n%s'; cat;;
esac
"""
HISTOGRAM = """Iterating over heap. This may take a while...
Object Histogram:

num \t  #instances\t#bytes\tClass description
--------------------------------------------------------------------------
1:\t\t70\t1680\tKept$Large
2:\t\t5\t80\tjava.lang.NullPointerException
3:\t\t3\t48\tKept$Small
Total : \t78\t1808
"""
KEPT = {"Kept$Small": 3, "Kept$Large": 70}


def test_the_same_counts_are_right():
    assert jdk_agent.difference(KEPT, HISTOGRAM) == ""


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (HISTOGRAM.replace("\t70\t", "\t69\t"), "Kept$Large: 69 instead of 70"),
        (HISTOGRAM.replace("3:\t\t3\t48\tKept$Small\n", ""), "Kept$Small: 0 instead of 3"),
        (HISTOGRAM + "sun.jvm.hotspot.oops.UnknownOopException", "UnknownOopException"),
        ("", "Kept$Small: 0 instead of 3"),
    ],
)
def test_another_count_and_an_exception_are_wrong(answer, told):
    assert told in jdk_agent.difference(KEPT, answer)


def run(monkeypatch, tmp_path, patterns=(), ready="ready\\n", histogram=HISTOGRAM, attach=True):
    """On an image whose programs are scripts."""
    monkeypatch.setenv("TERRACE_JDK_DIR", str(tmp_path))
    monkeypatch.setattr(jdk_agent, "may_attach", lambda: attach)
    monkeypatch.setattr(jdk_agent.shutil, "which", lambda _: None)  # no gcore
    (tmp_path / "bin").mkdir()
    (tmp_path / "histogram").write_text(histogram)
    for name in ("java", "javac", "jhsdb"):
        (tmp_path / "bin" / name).write_text(PROGRAM % (tmp_path / "histogram", ready))
        (tmp_path / "bin" / name).chmod(0o755)
    return jdk_agent.run(Session(Checkout(ROOT), tmp_path, tmp_path, patterns=patterns))


def test_each_collector_is_looked_at_in_each_setting(monkeypatch, tmp_path, capsys):
    assert run(monkeypatch, tmp_path).status == 0
    looks = len(jdk_test.COLLECTORS) * len(jdk_agent.SETTINGS)
    assert f"{looks} passed, 0 unlike" in capsys.readouterr().out


def test_a_pattern_chooses(monkeypatch, tmp_path, capsys):
    assert run(monkeypatch, tmp_path, ("G1, by core",)).status == 0
    assert "1 passed, 0 unlike" in capsys.readouterr().out


@pytest.mark.parametrize(("patterns", "attach"), [(("nosuch",), True), ((), False)])
def test_nothing_to_look_at_is_no_success(monkeypatch, tmp_path, patterns, attach):
    suite = run(monkeypatch, tmp_path, patterns, attach=attach)
    assert suite.status == 1
    assert attach or "ptrace_scope" in suite.notes[0]


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ({"ready": "'; exit 1; echo '"}, "the program has failed"),
        ({"histogram": ""}, "0 instead of 3"),
    ],
)
def test_what_is_wrong_fails(monkeypatch, tmp_path, capsys, how, told):
    assert run(monkeypatch, tmp_path, "Serial, no TLABs", **how).status == 1
    assert told in capsys.readouterr().out
