# SPDX-License-Identifier: MIT OR Apache-2.0
"""`terrace test`: the tests of presets, of what has changed, or of guests on emulated machines."""

import argparse

from terrace.arguments import Commands
from terrace.changed import run_changed
from terrace.checkout import Checkout, need_checkout
from terrace.errors import TerraceError
from terrace.prepare import prepare
from terrace.testing import PRESETS, QUICK_PRESETS, possible_presets, run_tests

_EXTRAS = ("test", "debug", "docs", "bench", "export", "package", "profile", "top", "watch")


def add_parser(commands: Commands) -> None:
    parser = commands.add_parser(
        "test",
        help="build the checkout and run its tests",
        description="Builds presets and runs their tests. "
        "The last line is 'N passed, N failed, N skipped'. With vm: runs the tests on other "
        "kernels and machines in qemu instead, and writes docs/guide/kernels.md.",
    )
    parser.add_argument("where", nargs="?", choices=["vm"], help="on emulated machines")
    parser.add_argument(
        "--preset", action="append", metavar="NAME", help="only this preset (may be given again)"
    )
    parser.add_argument("--quick", action="store_true", help="only the preset dev")
    parser.add_argument(
        "--changed",
        action="store_true",
        help="only tests that matter for what differs from main: a first look, in two minutes",
    )
    parser.add_argument(
        "--all",
        action="store_true",
        help="also what a preset says no more than another one, and all models in full",
    )
    parser.add_argument(
        "--minutes", type=float, default=60, metavar="N", help="vm: time for the tests of a guest"
    )
    parser.add_argument(
        "--filter", metavar="REGEX", help="only tests (vm: guests) whose name matches"
    )
    parser.set_defaults(act=run)


def _run_vm(options: argparse.Namespace, checkout: Checkout) -> int:
    from terrace.vm import command as vm
    from terrace.vm.rows import choose

    if options.preset or options.quick or options.all or options.changed:
        raise TerraceError(
            "test vm: --preset, --quick, --all and --changed are for tests on this machine", 2
        )
    choose(options.filter)
    prepare(checkout, ("vm",))
    return vm.run_guests(checkout, options.filter, 60 * options.minutes)


def run(options: argparse.Namespace, checkout: Checkout | None) -> int:
    """The command."""
    checkout = need_checkout(checkout, "test")
    if options.where == "vm":
        return _run_vm(options, checkout)
    unknown = sorted(set(options.preset or ()) - set(PRESETS))
    if unknown:
        raise TerraceError(
            f"there is no preset {' '.join(unknown)}; there are: {' '.join(PRESETS)}", 2
        )
    if options.changed and (options.preset or options.quick or options.all or options.filter):
        raise TerraceError("test: --changed chooses presets and tests by itself", 2)
    purpose = "changed" if options.changed else "test"
    prepare(checkout, (purpose,), _EXTRAS)
    if options.changed:
        return run_changed(checkout)
    presets = tuple(options.preset or (QUICK_PRESETS if options.quick else possible_presets()))
    return run_tests(checkout, presets, options.filter, options.all)
