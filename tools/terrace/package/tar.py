# SPDX-License-Identifier: MIT OR Apache-2.0
"""The tree that `cmake --install` makes, for any prefix."""

import platform
from pathlib import Path

from terrace.package import completion, manual
from terrace.package.making import Source, call, fresh


def make(source: Source, directory: Path) -> list[Path]:
    """terrace-VERSION-linux-glibc-MACHINE.tar.gz: slim images have no xz."""
    name = f"terrace-{source.version}-linux-glibc-{platform.machine()}"
    tree = fresh(directory) / name
    call(["cmake", "--install", str(source.built), "--strip", "--prefix", str(tree)], source.root)
    completion.write(tree / "share")
    manual.write(source, tree / "share")
    for archive in tree.rglob("*.a"):
        call(["strip", "--strip-debug", "--enable-deterministic-archives", str(archive)], tree)
    result = directory / f"{name}.tar.gz"
    owner = ("--owner=0", "--group=0", "--numeric-owner", "--mode=u=rwX,go=rX")
    order = ("--format=gnu", "--sort=name", f"--mtime=@{source.epoch}")
    packed = ("--use-compress-program=gzip -n -9", "-cf", str(result))
    call(["tar", *order, *owner, *packed, name], directory)
    return [result]
