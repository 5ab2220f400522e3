# SPDX-License-Identifier: MIT OR Apache-2.0
"""How a command adds its words to the command line. argparse: at first there is only Python."""

import argparse
from typing import TypeAlias

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
DEBUGGER = ("findleaks", "whatis", "umastat", "verify", "umausers", "umem")


def behind_dashes(words: list[str]) -> list[str]:
    """A program and its arguments: argparse leaves the -- before them where it is."""
    return words[1:] if words[:1] == ["--"] else words
