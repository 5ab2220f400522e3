# SPDX-License-Identifier: MIT OR Apache-2.0
"""Parts of the debugger for object caches that need no process: words, arenas, damage."""

import pytest

for module in ("numpy", "scipy", "elftools", "rich"):
    pytest.importorskip(module)

# ruff: noqa: E402 - what follows needs these
from terrace.debug import damage
from terrace.debug.umem.arenas import Arena, tree
from terrace.debug.umem.context import split
from terrace.errors import TerraceError


def arena(address: int, source: int) -> Arena:
    return Arena(address, f"arena {address}", 8, source, *[0] * 7)


def test_arenas_stand_behind_their_sources():
    arenas = [arena(1, 3), arena(2, 0), arena(3, 2), arena(4, 2), arena(5, 99)]
    shown = [(depth, a.address) for depth, a in tree(arenas)]
    assert shown == [(0, 2), (1, 3), (2, 1), (1, 4), (0, 5)]


def test_arenas_that_import_from_each_other_are_shown_once():
    arenas = [arena(1, 2), arena(2, 1), arena(3, 3), arena(4, 0)]
    assert sorted(a.address for _, a in tree(arenas)) == [1, 2, 3, 4]


def test_options_stand_together_or_have_a_value():
    words = split(["-ef", "one", "-t", "7", "-v", "two"], "efv", "t", 2, "usage")
    assert words.flags == {"e", "f", "v"}
    assert words.values["t"] == "7"
    assert words.rest == ["one", "two"]


@pytest.mark.parametrize("wrong", [["-x"], ["a", "b", "c"], ["-t"]])
def test_other_words_are_told_the_usage(wrong):
    with pytest.raises(TerraceError, match="usage: do this"):
        split(wrong, "ef", "t", 2, "do this")


@pytest.mark.parametrize(
    "error", [IndexError("x"), MemoryError(), ValueError("x"), OverflowError()]
)
def test_what_can_not_be_decoded_is_one_line(error):
    with pytest.raises(TerraceError, match="it is damaged") as caught, damage.expected("vmem"):
        raise error
    assert "\n" not in str(caught.value)
