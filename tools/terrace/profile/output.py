# SPDX-License-Identifier: MIT OR Apache-2.0
"""Where a profile goes: a table on the terminal, or a file of some format."""

import sys
from pathlib import Path

from rich.console import Console

from terrace.errors import TerraceError
from terrace.messages import say
from terrace.profile.model import Profile

_VIEWED = {
    "pprof": "`go tool pprof -http=: {}` shows it",
    "flamegraph": "any browser shows it",
    "speedscope": "speedscope shows it",
}
_WIDTH = 120  # of a table that is no terminal's


def expect_writable(path: str | None) -> None:
    """Before anybody waits for the profile."""
    directory = Path(path or ".").absolute().parent
    if not directory.is_dir():
        raise TerraceError(f"-o {path}: there is no directory {directory}", 2)


def _encoded(profile: Profile, format_name: str, before: Profile | None) -> bytes:
    if format_name == "pprof":
        from terrace.profile.pprof import encode

        return encode(profile)
    if format_name == "flamegraph":
        from terrace.profile.flamegraph import page

        return page(profile, before).encode()
    from terrace.profile import formats

    return str(getattr(formats, format_name)(profile)).encode()


def _print(profile: Profile, differs: bool, console: Console) -> None:
    from terrace.profile.text import print_sites

    print_sites(profile, console, differs)


def write(
    profile: Profile, format_name: str, path: str | None, before: Profile | None = None
) -> None:
    """With `before`: the difference, for a flame graph's colours."""
    from terrace.profile.diff import difference

    differs = before is not None
    if before is not None and format_name != "flamegraph":
        profile = difference(before, profile)
    if path is None and format_name == "pprof" and sys.stdout.isatty():
        raise TerraceError("pprof's format is not for a terminal: name a file by -o FILE", 2)
    try:
        if path is None and format_name == "text":
            terminal = sys.stdout.isatty()
            _print(profile, differs, Console(highlight=False, width=None if terminal else _WIDTH))
        elif path is None:
            sys.stdout.flush()
            sys.stdout.buffer.write(_encoded(profile, format_name, before))
        elif format_name == "text":
            with open(path, "w", encoding="utf-8") as file:
                _print(profile, differs, Console(file=file, highlight=False, width=_WIDTH))
        else:
            Path(path).write_bytes(_encoded(profile, format_name, before))
    except OSError as error:
        raise TerraceError(f"-o {path}: {error.strerror}") from None
    if path is not None:
        hint = _VIEWED.get(format_name, "").format(path)
        say(f"{profile.summary()}; written to {path}" + (f": {hint}" if hint else ""))
