# SPDX-License-Identifier: MIT OR Apache-2.0
"""`terrace package KIND`: makes packages in build/packages; --check tries them."""

import argparse
from pathlib import Path

from terrace.arguments import Commands
from terrace.checkout import Checkout, need_checkout
from terrace.errors import TerraceError
from terrace.messages import say
from terrace.package import crate, deb, rpm, sources, tar, trying, wheel
from terrace.package.making import Source, built_source, sums
from terrace.prepare import prepare

MAKERS = {
    "source": sources.make,
    "tar": tar.make,
    "wheel": wheel.make,
    "deb": deb.make,
    "rpm": rpm.make,
    "crate": crate.make,
}
OF_SOURCES = ("source", "crate", "deb", "rpm")  # without the libraries of the preset release


def add_parser(commands: Commands) -> None:
    parser = commands.add_parser(
        "package",
        help="make what others install: source, tar, wheel, deb, rpm, crate",
        description="Makes packages of this checkout in build/packages, and SHA256SUMS of them.",
    )
    parser.add_argument("kind", choices=[*MAKERS, "all"])
    parser.add_argument(
        "--check",
        action="store_true",
        help="make each twice and compare the bytes; as root: install it in a fresh Debian root, "
        "use it there, remove it (not crate; source: a program by each build tool)",
    )
    parser.set_defaults(act=run)


def make_twice(kind: str, source: Source, directory: Path) -> list[Path]:
    """Fails where the second has other bytes."""
    first = MAKERS[kind](source, directory)
    before = sums(first)
    after = sums(MAKERS[kind](source, directory.with_name(f"{kind}-again")))
    differing = sorted(n for n in {*before, *after} if before.get(n) != after.get(n))
    if differing:
        raise TerraceError(f"package {kind}: made twice, these differ: {' '.join(differing)}")
    return first


def write_sums(packages: Path, made: dict[str, list[Path]]) -> str:
    """SHA256SUMS of the files made of each kind; returns its text."""
    text = "".join(
        f"{each}  {kind}/{name}\n"
        for kind, paths in made.items()
        for name, each in sums(paths).items()
    )
    (packages / "SHA256SUMS").write_text(text, encoding="utf-8")
    return text


def run(options: argparse.Namespace, checkout: Checkout | None) -> int:
    """The command."""
    checkout = need_checkout(checkout, "package")
    prepare(checkout, ("package",), ("package",))
    needs_libraries = options.kind not in OF_SOURCES
    built = checkout.build / "release"
    source = built_source(checkout) if needs_libraries else Source(checkout.root, built)
    packages = checkout.build / "packages"
    packages.mkdir(exist_ok=True)
    made: dict[str, list[Path]] = {}
    for kind in MAKERS if options.kind == "all" else (options.kind,):
        if options.check:
            made[kind] = make_twice(kind, source, packages / kind)
            say(f"{kind}: the same bytes twice")
            if kind in trying.TRIES:
                trying.TRIES[kind](source, made[kind], packages / "roots")
                say(f"{kind}: installed, used and removed")
        else:
            made[kind] = MAKERS[kind](source, packages / kind)
    print(write_sums(packages, made), end="")
    return 0
