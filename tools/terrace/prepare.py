# SPDX-License-Identifier: MIT OR Apache-2.0
"""First use: distribution packages, the Python environment, then the command again inside it."""

import importlib.util
from pathlib import Path

from terrace import packages, venv
from terrace.checkout import Checkout
from terrace.errors import TerraceError
from terrace.messages import say


def _note(checkout: Checkout) -> Path:
    return checkout.build / "python-packages-not-had.txt"


def went_without(checkout: Checkout) -> bool:
    """Whether rich, as it is wanted now, could not be had: `run` does not try again each time."""
    try:
        return _note(checkout).read_text(encoding="utf-8") == venv.wanted(checkout, "run")
    except OSError:
        return False


def _ensure_rich(checkout: Checkout) -> bool:
    """Like venv.ensure_extras(); without a package index `run` goes on with plain tables."""
    try:
        return venv.ensure_extras(checkout, ("run",))
    except TerraceError as error:
        say(f"going on without rich, tables are plain: {str(error).partition(chr(10))[0]}")
        _note(checkout).write_text(venv.wanted(checkout, "run"), encoding="utf-8")
        return False


def prepare(
    checkout: Checkout,
    purposes: tuple[str, ...] = (),
    extras: tuple[str, ...] = (),
    essential: tuple[str, ...] = packages.ESSENTIAL,
) -> None:
    """Makes sure of everything but the library itself; cheap when nothing is missing.

    Does not return when the environment is new or another Python runs: it starts again inside.
    """
    with checkout.locked():
        stand_ins = packages.install(
            (*essential, *purposes),
            checkout.build / "packages-not-offered.txt",
            venv.installed_extras(checkout),
        )
        needed = (*extras, *stand_ins)
        if needed:
            changed = venv.ensure_extras(checkout, ("run", *needed))
        elif went_without(checkout):
            return
        else:
            changed = _ensure_rich(checkout)
            if went_without(checkout):
                return
    if changed or not venv.is_running_in(checkout):
        venv.continue_inside(checkout)


def _is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # the package it is in
        return False


def need_modules(
    command: str, modules: dict[str, str], extras: tuple[str, ...], checkout: Checkout | None
) -> None:
    """Packages by the modules that a command imports; a checkout installs those that are missing.

    Nothing is built. Does not return when they were: see prepare().
    """
    missing = [package for module, package in modules.items() if not _is_there(module)]
    if missing and checkout is None:
        raise TerraceError(
            f"{command} needs more Python packages: pip install {' '.join(missing)}, or the "
            f"distribution's: {' '.join(f'python3-{name}' for name in missing)}"
        )
    if missing and checkout is not None:
        prepare(checkout, (), extras, ("python",))
