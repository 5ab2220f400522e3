# SPDX-License-Identifier: MIT OR Apache-2.0
"""Dockerfiles that copy from the image, built by buildah on bases made of Debian's packages."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from terrace.messages import say
from terrace.package.making import Source, call
from terrace.package.roots import bare_archive, full_archive, suites

_BUILDAH = ("buildah", "--storage-driver", "vfs", "--root", "storage", "--runroot", "state")


def _bases(source: Source, roots: Path) -> Iterator[tuple[str, Path, str]]:
    """A stage of the Dockerfile, its root, and the compiler of its program."""
    cc = f"{source.machine}-linux-gnu-gcc" if source.is_cross else "cc"
    yield "debian", full_archive(source, next(iter(suites(source))), roots), cc
    yield "distroless", bare_archive(source, roots, "glibc", "libc6"), cc
    if source.musl:
        yield "alpine", bare_archive(source, roots, "musl", "musl,busybox-static"), "musl-gcc"


def try_image(source: Source, made: list[Path], roots: Path) -> None:
    """Programs run on it in each; nothing is pulled from a registry."""
    recipe = source.recipes / "image"
    for stage, base, compiler in _bases(source, roots):
        with tempfile.TemporaryDirectory(dir=roots) as name:
            directory = Path(name)
            shutil.copy(recipe / "Dockerfile", directory)
            (directory / "root.tar").hardlink_to(base)
            call([compiler, str(recipe / "program.c"), "-o", "program"], directory)
            call([*_BUILDAH, "pull", "--quiet", f"oci-archive:{made[0]}"], directory)
            chosen = ("--isolation", "chroot", "--arch", source.arch, "--target", stage)
            call([*_BUILDAH, "bud", *chosen, "."], directory)
        say(f"image: used in {stage}, of {base.stem}")
