# SPDX-License-Identifier: MIT OR Apache-2.0
"""`terrace package KIND`: makes packages in build/packages; --check tries them."""

import argparse
import platform
from pathlib import Path

from terrace.arguments import Commands
from terrace.checkout import Checkout, need_checkout
from terrace.errors import TerraceError
from terrace.messages import say
from terrace.package import crate, deb, image, rpm, sources, tar, trying, wheel
from terrace.package.making import MACHINES, Source, build_libraries, source_for, sums
from terrace.prepare import prepare

MAKERS = {
    "source": sources.make,
    "tar": tar.make,
    "wheel": wheel.make,
    "deb": deb.make,
    "rpm": rpm.make,
    "crate": crate.make,
    "image": image.make,
}
CROSS = ("tar", "wheel", "deb", "image")  # those that --arch can be given for
OF_SOURCES = ("source", "crate", "deb", "rpm")  # without the libraries of the preset release


def add_parser(commands: Commands) -> None:
    parser = commands.add_parser(
        "package",
        help="make what others install: source, tar, wheel, deb, rpm, crate, image",
        description="Makes packages of this checkout in build/packages, and SHA256SUMS of them.",
    )
    parser.add_argument("kind", choices=[*MAKERS, "all"])
    parser.add_argument(
        "--arch",
        choices=list(MACHINES),
        help="architecture that the packages are for (tar, wheel, deb, image); by Debian's cross "
        "compiler if it is another than this machine's",
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="make each twice and compare the bytes; as root: install it in fresh roots of several "
        "distributions, use it there, remove it (crate and source: a program by each build tool)",
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


def write_sums(packages: Path, made: list[Path]) -> str:
    """SHA256SUMS of the files; returns its text. Of those for all architectures one is enough."""
    once: dict[str, Path] = {}
    for path in made:
        if sums([path]) != sums([once.setdefault(path.name, path)]):
            raise TerraceError(f"{path} and {once[path.name]} differ")
    lines = (f"{sums([p])[p.name]}  {p.relative_to(packages)}\n" for p in once.values())
    text = "".join(lines)
    (packages / "SHA256SUMS").write_text(text, encoding="utf-8")
    return text


def kinds(source: Source) -> tuple[str, ...]:
    """What can be made for its machine."""
    return CROSS if source.is_cross else tuple(MAKERS)


def run(options: argparse.Namespace, checkout: Checkout | None) -> int:
    """The command."""
    checkout = need_checkout(checkout, "package")
    source = source_for(checkout, MACHINES.get(options.arch, platform.machine()))
    if options.kind not in (*kinds(source), "all"):
        raise TerraceError(f"package {options.kind}: not for another architecture than this one")
    prepare(checkout, ("package", *(("cross",) if source.is_cross else ())), ("package",))
    if options.kind not in OF_SOURCES:
        build_libraries(checkout, source, options.kind in ("tar", "image", "all"))
    roots = checkout.build / "packages" / "roots"
    packages = roots.with_name(source.arch) if source.is_cross else roots.parent
    packages.mkdir(parents=True, exist_ok=True)
    made: list[Path] = []
    for kind in kinds(source) if options.kind == "all" else (options.kind,):
        if options.check:
            files = make_twice(kind, source, packages / kind)
            say(f"{kind}: the same bytes twice")
            trying.try_everywhere(kind, source, files, roots)
        else:
            files = MAKERS[kind](source, packages / kind)
        made += files
    print(write_sums(packages, made), end="")
    return 0
