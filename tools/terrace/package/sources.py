# SPDX-License-Identifier: MIT OR Apache-2.0
"""The files that git knows: what CMake's FetchContent, Meson, Conan and vcpkg build from."""

import os
import shutil
import sys
from pathlib import Path

from terrace.package.making import Source, call, fresh, known_files, pack


def make(source: Source, directory: Path) -> list[Path]:
    """terrace-VERSION.tar.gz."""
    tree = fresh(directory) / f"terrace-{source.version}"
    for name in known_files(source.root):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source.root / name, tree / name, follow_symlinks=False)
    return [pack(source, tree, tree.name)]


def try_source(source: Source, made: list[Path], directory: Path) -> None:
    """With the tools of this Python's environment."""
    search = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    use = str(source.recipes / "source" / "use.sh")
    call(["sh", use, str(made[0])], directory, PATH=search)
