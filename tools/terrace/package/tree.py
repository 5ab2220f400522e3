# SPDX-License-Identifier: MIT OR Apache-2.0
"""The sources that distributions' packages are compiled from, with what is generated for them."""

import shutil
from pathlib import Path

from terrace.package import completion, manual
from terrace.package.making import Source, known_files

# Tests and benchmarks are not compiled.
FILES = ("CMakeLists.txt", "CHANGELOG.md", "LICENSE-*", "README.md", "cmake", "include", "src")
TOOLS = ("tools/record", "tools/terrace", "packaging/rpm", "packaging/tar")


def copy(source: Source, tree: Path, share: Path) -> None:
    """The files that git knows; completion and manual pages in `share`."""
    for name in known_files(source.root, *FILES, *TOOLS):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source.root / name, tree / name)
    completion.write(share)
    manual.write(source, share)


def maintainer(source: Source) -> str:
    """As the Debian packages name them."""
    control = (source.recipes / "debian/debian/control").read_text(encoding="utf-8")
    lines = control.splitlines()
    return next(x.partition(" ")[2] for x in lines if x.startswith("Maintainer: "))
