# SPDX-License-Identifier: MIT OR Apache-2.0
"""`terrace fuzz`: builds the fuzzers with libFuzzer and lets one look for faults for a while."""

import argparse
import shutil
import subprocess
from pathlib import Path

from terrace import build
from terrace.arguments import Commands
from terrace.checkout import Checkout, need_checkout
from terrace.errors import TerraceError
from terrace.messages import say
from terrace.prepare import prepare

PRESET = "fuzz"
_LONGEST_INPUT = 4096  # bytes
_LONGEST_TURN = 30  # seconds for one input: beyond, it hangs


def names(checkout: Checkout) -> list[str]:
    """The fuzzers are the corpora that the tree keeps."""
    return sorted(p.name for p in (checkout.root / "fuzz" / "corpus").iterdir() if p.is_dir())


def _compiler() -> dict[str, str]:
    for suffix in ("", *(f"-{version}" for version in range(30, 13, -1))):
        found = shutil.which(f"clang++{suffix}")
        if found:
            return {"CMAKE_CXX_COMPILER": found, "CMAKE_C_COMPILER": found.replace("++", "")}
    raise TerraceError("fuzz: clang++ is missing (packages clang, libclang-rt-dev)")


def _program(checkout: Checkout, name: str) -> Path:
    with checkout.locked():
        build.configure(checkout, PRESET, _compiler())
        build.compile_targets(checkout, PRESET, (f"fuzz_{name}",))
    return checkout.build / PRESET / "fuzz" / f"fuzz_{name}"


def fuzz(checkout: Checkout, name: str, seconds: int) -> int:
    """Exit status 0 when nothing was found; a finding stays as a file beside the new corpus."""
    if name not in names(checkout):
        raise TerraceError(f"there is no fuzzer {name}; there are: {' '.join(names(checkout))}", 2)
    program = _program(checkout, name)
    grown = checkout.build / PRESET / "corpus" / name
    grown.mkdir(parents=True, exist_ok=True)
    say(f"fuzz: {name} for {seconds} s; what covers new code goes to {grown}", always=True)
    command = [
        str(program),
        f"-max_total_time={seconds}",
        f"-max_len={_LONGEST_INPUT}",
        f"-timeout={_LONGEST_TURN}",
        "-print_final_stats=1",
        f"-artifact_prefix={grown.parent}/{name}-",
        str(grown),
        str(checkout.root / "fuzz" / "corpus" / name),
    ]
    status = subprocess.run(command, stdin=subprocess.DEVNULL, check=False).returncode
    if status != 0:
        say(f"fuzz: {name} found a fault: the input is {grown.parent}/{name}-*", always=True)
    return 0 if status == 0 else 1


def add_parser(commands: Commands) -> None:
    parser = commands.add_parser(
        "fuzz",
        help="list the fuzzers, or let one look for faults",
        description="Builds the fuzzers with Clang's libFuzzer and runs one.",
    )
    parser.add_argument("name", nargs="?", help="which one; without a name they are listed")
    parser.add_argument(
        "--seconds", type=int, default=60, metavar="N", help="how long (default 60)"
    )
    parser.set_defaults(act=run)


def run(options: argparse.Namespace, checkout: Checkout | None) -> int:
    """The command."""
    checkout = need_checkout(checkout, "fuzz")
    if options.name is None:
        print("\n".join(names(checkout)))
        return 0
    prepare(checkout, ("test", "fuzz"))
    return fuzz(checkout, options.name, options.seconds)
