# SPDX-License-Identifier: MIT OR Apache-2.0
"""Debian packages, compiled by dpkg-buildpackage from the files that git knows."""

import email.utils
import os
import shutil
from pathlib import Path

from terrace.build import available_cpus
from terrace.package import completion, manual
from terrace.package.making import Source, call, fresh, known_files

# Tests and benchmarks are not compiled.
FILES = ("CMakeLists.txt", "CHANGELOG.md", "LICENSE-*", "README.md", "cmake", "include", "src")
TOOLS = ("tools/record", "tools/terrace", "packaging/tar")


def _changelog(source: Source) -> str:
    """The packages' own, with one entry: what has changed is in CHANGELOG.md."""
    date = email.utils.formatdate(int(source.epoch))
    maintainer = next(
        line.partition(" ")[2]
        for line in (source.recipes / "debian/debian/control").read_text().splitlines()
        if line.startswith("Maintainer: ")
    )
    entry = "  * See CHANGELOG.md, installed beside this file."
    return (
        f"terrace ({source.version}) unstable; urgency=medium\n\n{entry}\n\n"
        f" -- {maintainer}  {date}\n"
    )


def make(source: Source, directory: Path) -> list[Path]:
    """Without a source package; lintian has nothing to say about the others."""
    tree = fresh(directory) / f"terrace-{source.version}"
    for name in known_files(source.root, *FILES, *TOOLS):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source.root / name, tree / name)
    shutil.copytree(source.recipes / "debian" / "debian", tree / "debian")
    completion.write(tree / "debian" / "share")
    manual.write(source, tree / "debian" / "share")
    (tree / "debian" / "changelog").write_text(_changelog(source), encoding="utf-8")
    jobs = f"parallel={available_cpus()}"
    build = ["dpkg-buildpackage", "--build=binary", "--no-sign", "--no-check-builddeps"]
    options = " ".join(filter(None, (os.environ.get("DEB_BUILD_OPTIONS"), jobs)))
    call(build, tree, SOURCE_DATE_EPOCH=source.epoch, DEB_BUILD_OPTIONS=options)
    (changes,) = directory.glob("*.changes")
    call(["lintian", "--fail-on", "error,warning", "--allow-root", str(changes)], directory)
    return sorted(directory.glob("*.deb"))
