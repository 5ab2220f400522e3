# SPDX-License-Identifier: MIT OR Apache-2.0
"""Finds the library: a named one, the checkout's, the wheel's, or an installed one."""

import importlib.util
import os
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from terrace.captured import run_captured
from terrace.checkout import LIBRARY_NAME, Checkout, chosen_library
from terrace.errors import TerraceError

WITH_PACKAGE = Path(__file__).with_name("lib")  # the wheel's

# By the words of `run --library`.
OTHERS = {"hardened": "libterrace-hardened.so", "umem": "libumem_malloc.so"}


def _from_pkg_config() -> Iterator[Path]:
    command = [os.environ.get("PKG_CONFIG", "pkg-config"), "--variable=libdir", "terrace"]
    try:
        answer = run_captured(command)
    except OSError:
        return
    if answer.returncode == 0 and answer.stdout.strip():
        yield Path(answer.stdout.strip())


def _standard_directories() -> Iterator[Path]:
    triplet = sysconfig.get_config_var("MULTIARCH") or ""
    for prefix in dict.fromkeys((sys.prefix, "/usr/local", "/usr")):
        for directory in (f"lib/{triplet}", "lib64", "lib"):
            yield Path(prefix, directory)


def _in_directory(directory: Path, name: str) -> Path | None:
    """The symbolic link for development may be missing: the run-time part will do."""
    candidates = (directory / name, *sorted(directory.glob(name + ".*")))
    return next((path for path in candidates if path.is_file()), None)


def installed_library() -> Path:
    """The first libterrace.so: in the wheel, where pkg-config says, in a standard directory."""
    for directories in (iter([WITH_PACKAGE]), _from_pkg_config(), _standard_directories()):
        for directory in directories:
            found = _in_directory(directory, LIBRARY_NAME)
            if found:
                return found
    raise TerraceError(
        f"{LIBRARY_NAME} was not found: set TERRACE_LIBRARY to its path, or install it "
        "(cmake --install) where pkg-config or the standard library directories have it"
    )


def find_library(checkout: Checkout | None) -> Path:
    """$TERRACE_LIBRARY, else the checkout's (built if need be), else the installed one."""
    chosen = chosen_library()
    if chosen:
        return chosen  # there is nothing to build, and rich only makes the table prettier
    if checkout is None:
        return installed_library()
    from terrace import venv
    from terrace.build import build_library, is_up_to_date
    from terrace.prepare import prepare, went_without

    # Any Python that has rich will do, but the checkout's own one is kept up to its requirements.
    if venv.is_running_in(checkout):
        ready = venv.has_extra(checkout, "run")
    else:
        ready = importlib.util.find_spec("rich") is not None
    if (ready or went_without(checkout)) and is_up_to_date(checkout):
        return checkout.library
    prepare(checkout)
    return build_library(checkout)


def find_other(checkout: Checkout | None, word: str) -> Path:
    """One of OTHERS, which is in the same directory."""
    directory = find_library(checkout).parent
    found = _in_directory(directory, OTHERS[word])
    if found is None:
        raise TerraceError(f"{OTHERS[word]} is not in {directory}")
    return found
