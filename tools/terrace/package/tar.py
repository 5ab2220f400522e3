# SPDX-License-Identifier: MIT OR Apache-2.0
"""The trees that `cmake --install` makes, for any prefix: for glibc, and for musl."""

from pathlib import Path

from terrace.package import completion, manual
from terrace.package.making import Source, call, fresh, pack


def make_for(libc: str, built: Path, source: Source, directory: Path) -> Path:
    """terrace-VERSION-linux-LIBC-MACHINE.tar.gz, since slim images have no xz."""
    name = f"terrace-{source.version}-linux-{libc}-{source.machine}"
    tree = directory / name
    call(["cmake", "--install", str(built), "--strip", "--prefix", str(tree)], source.root)
    completion.write(tree / "share")
    manual.write(source, tree / "share")
    for archive in tree.rglob("*.a"):
        call([source.strip, "--strip-debug", "--enable-deterministic-archives", str(archive)], tree)
    return pack(source, tree, name)


def make(source: Source, directory: Path) -> list[Path]:
    """That for glibc first."""
    built = {"glibc": source.built} | ({"musl": source.musl} if source.musl else {})
    fresh(directory)
    return [make_for(libc, path, source, directory) for libc, path in built.items()]
