# SPDX-License-Identifier: MIT OR Apache-2.0
"""Completion of `terrace` in bash, zsh and fish, which shtab makes of the command line's parser."""

import argparse
from pathlib import Path

from terrace.cli import MODULES, make_parser

# Where each shell looks, below /usr/share.
PLACES = {
    "bash": "bash-completion/completions/terrace",
    "zsh": "zsh/vendor-completions/_terrace",
    "fish": "fish/vendor_completions.d/terrace.fish",
}
_FILES = ("FILE", "FILE.prom", "PID|CORE", "PROGRAM [ARGUMENT ...]")


def _complete_files(parser: argparse.ArgumentParser) -> None:
    """What the help calls a file is completed by the names of files."""
    import shtab

    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                _complete_files(inner)
        elif action.metavar in _FILES:
            action.complete = shtab.FILE  # type: ignore[attr-defined]


def write(share: Path) -> None:
    """A script for each shell."""
    import shtab

    parser = make_parser(list(MODULES))
    _complete_files(parser)
    for shell, place in PLACES.items():
        path = share / place
        path.parent.mkdir(parents=True)
        path.write_text(shtab.complete(parser, shell), encoding="utf-8")
