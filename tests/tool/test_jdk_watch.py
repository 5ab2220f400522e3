# SPDX-License-Identifier: MIT OR Apache-2.0
"""`terrace jdk test --suite watch`: what must stand in the answers of jcmd and JFR."""

import pytest
from terrace.jdk import command as jdk
from terrace.jdk.watch import BY_CORE, BY_THREAD, wrong_in_counters, wrong_in_events, wrong_in_info

INFO = """4711:
Objects are taken from buffers by core, by restartable sequences
Collections 2, of these flipped 0, left it by core 2
level   size K   free K      refills refilled K    foreign       busy neighbours   wasted K
core       256      161           38       5258          0          1          0          1
"""
COUNTERS = "sun.gc.hab.byCore=1\nsun.gc.hab.core.refills=38\nsun.gc.hab.core.size=262144\n"
EVENTS = """jdk.HierarchicalAllocationBuffers {
  level = "core"
  association = "core"
  refills = 38
}
"""
NONE = "4711:\nThere are no hierarchical allocation buffers (UseHierarchicalAllocBuffers)\n"


@pytest.mark.parametrize(
    ("wrong", "answer"),
    [(wrong_in_info, INFO), (wrong_in_counters, COUNTERS), (wrong_in_events, EVENTS)],
)
def test_an_answer_tells_the_association_and_refills(wrong, answer):
    assert not wrong(answer, BY_CORE)
    assert wrong(answer, BY_THREAD)
    assert wrong(answer.replace("38", "0"), BY_CORE)
    assert wrong("Exception: exit status 1", BY_CORE)


def test_without_buffers_nothing_is_told():
    assert not wrong_in_info(NONE, "")
    assert wrong_in_info(INFO, "")
    assert not wrong_in_counters("java.threads.live=9\n", "")
    assert wrong_in_counters(COUNTERS, "")
    assert not wrong_in_events("", "")
    assert wrong_in_events(EVENTS, "")


def test_the_suite_is_there():
    assert "watch" in jdk.SUITES
