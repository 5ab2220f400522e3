# SPDX-License-Identifier: MIT OR Apache-2.0
"""The tree that `cmake --install` makes, for any prefix."""

from pathlib import Path

from terrace.package import completion, manual
from terrace.package.making import Source, call, fresh, pack


def make(source: Source, directory: Path) -> list[Path]:
    """terrace-VERSION-linux-glibc-MACHINE.tar.gz: slim images have no xz."""
    name = f"terrace-{source.version}-linux-glibc-{source.machine}"
    tree = fresh(directory) / name
    call(["cmake", "--install", str(source.built), "--strip", "--prefix", str(tree)], source.root)
    completion.write(tree / "share")
    manual.write(source, tree / "share")
    for archive in tree.rglob("*.a"):
        call([source.strip, "--strip-debug", "--enable-deterministic-archives", str(archive)], tree)
    return [pack(source, tree, name)]
