# SPDX-License-Identifier: MIT OR Apache-2.0
"""First use: distribution packages, the Python environment, then the command again inside it."""

from __future__ import annotations

from terrace import packages, venv
from terrace.checkout import Checkout


def prepare(
    checkout: Checkout, purposes: tuple[str, ...] = (), extras: tuple[str, ...] = ()
) -> None:
    """Makes sure of everything but the library itself; cheap when nothing is missing.

    Does not return when the environment is new or another Python runs: it starts again inside.
    """
    with checkout.locked():
        stand_ins = packages.install(
            (*packages.ESSENTIAL, *purposes),
            checkout.build / "packages-not-offered.txt",
            venv.installed_extras(checkout),
        )
        changed = venv.ensure_extras(checkout, ("run", *extras, *stand_ins))
    if changed or not venv.is_running_in(checkout):
        venv.continue_inside(checkout)
