# SPDX-License-Identifier: MIT OR Apache-2.0
"""An image that others copy Terrace from: what a program needs at run time, in /opt/terrace."""

import os
import shutil
import time
from pathlib import Path

from terrace.package.making import Source, archive, call, fresh

# Of what `cmake --install` installs.
_FILES = ("bin/terrace-run", "lib/libterrace*.so.*", "lib/lib*-preload.so", "share/doc/*/LICENSE-*")


def _copy(source: Source, installed: Path, prefix: Path) -> None:
    """With musl's libraries in a directory of their own, where terrace-run looks for them."""
    for pattern in _FILES:
        for file in installed.glob(pattern):
            copy = prefix / file.relative_to(installed)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, copy, follow_symlinks=False)
    if source.musl:
        own = prefix / "lib" / "musl"
        own.mkdir()
        for name in ("libterrace", "libterrace-hardened"):
            copy = own / f"{name}-preload.so"
            shutil.copy(source.musl / f"{name}.so", copy)
            call([source.strip, str(copy)], prefix)


def _make_alike(source: Source, tree: Path) -> None:
    """Modes and times, whoever makes it and whenever."""
    for path in tree.rglob("*"):
        if not path.is_symlink():
            path.chmod(0o755 if os.access(path, os.X_OK) else 0o644)
        os.utime(path, (int(source.epoch),) * 2, follow_symlinks=False)


def make(source: Source, directory: Path) -> list[Path]:
    """terrace-VERSION-image-ARCH.tar: an OCI layout, named terrace:latest."""
    tree = fresh(directory) / "tree"
    installed = directory / "installed"
    install = ["cmake", "--install", str(source.built), "--strip", "--prefix", str(installed)]
    call(install, source.root)
    _copy(source, installed, tree / "opt" / "terrace")
    _make_alike(source, tree)
    image = ("--image", "layout:terrace:latest")
    when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(int(source.epoch)))
    for command in (
        ["init", "--layout", "layout"],
        ["new", *image],
        ["insert", *image, "--rootless", "--history.created", when, "tree/opt", "/opt"],
        ["config", *image, "--no-history", "--created", when, "--architecture", source.arch],
        ["gc", "--layout", "layout"],
    ):
        call(["umoci", *command], directory)
    name = f"terrace-{source.version}-image-{source.arch}.tar"
    return [archive(source, directory / name, directory / "layout", ".")]
