# SPDX-License-Identifier: MIT OR Apache-2.0
"""Where things are: in a checkout of the sources, or around an installed library."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from terrace.errors import TerraceError
from terrace.messages import say

LIBRARY_NAME = "libterrace.so"


@dataclass(frozen=True)
class Checkout:
    """The paths of a checkout; nothing is written outside `build`."""

    root: Path

    @property
    def build(self) -> Path:
        return self.root / "build"

    @property
    def environment(self) -> Path:
        return self.build / ".venv"

    @property
    def library(self) -> Path:
        return self.build / "release" / LIBRARY_NAME

    @property
    def requirements(self) -> Path:
        return self.root / "tools" / "requirements"

    @contextlib.contextmanager
    def locked(self, preset: str = "release") -> Iterator[None]:
        """Only one process installs and builds; the others wait for it.

        The other presets than release have a lock each: what runs beside their build goes on.
        """
        name = ".terrace.lock" if preset == "release" else f".terrace-{preset}.lock"
        try:
            self.build.mkdir(exist_ok=True)
            lock_file = (self.build / name).open("w")
        except OSError as error:
            raise TerraceError(
                f"{self.build} can not be written ({error.strerror}): use a checkout of your own, "
                "or set TERRACE_LIBRARY to a library that is built already"
            ) from None
        with lock_file as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                say("waiting for another terrace command that is building")
                fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def find_checkout() -> Checkout | None:
    """The checkout that this package is part of; None when the package is installed."""
    root = Path(__file__).resolve().parents[2]
    if (root / "CMakePresets.json").is_file() and (root / "src").is_dir():
        return Checkout(root)
    return None


def need_checkout(checkout: Checkout | None, subcommand: str) -> Checkout:
    """For commands that are not there where only the library was installed."""
    if checkout is None:
        raise TerraceError(
            f"`{subcommand}` needs a checkout of the sources: run ./terrace {subcommand} there"
        )
    return checkout


def chosen_library() -> Path | None:
    """What $TERRACE_LIBRARY names: it wins everywhere and is never built."""
    value = os.environ.get("TERRACE_LIBRARY")
    if not value:
        return None
    path = Path(value).absolute()
    if not path.is_file():
        raise TerraceError(f"TERRACE_LIBRARY={value}: there is no such file")
    return path
