# SPDX-License-Identifier: MIT OR Apache-2.0
"""Debian packages, compiled by dpkg-buildpackage from the files that git knows."""

import email.utils
import os
import shutil
from pathlib import Path

from terrace.build import available_cpus
from terrace.package import tree
from terrace.package.making import Source, call, fresh


def _changelog(source: Source) -> str:
    """The packages' own, with one entry: what has changed is in CHANGELOG.md."""
    date = email.utils.formatdate(int(source.epoch))
    entry = "  * See CHANGELOG.md, installed beside this file."
    return (
        f"terrace ({source.version}) unstable; urgency=medium\n\n{entry}\n\n"
        f" -- {tree.maintainer(source)}  {date}\n"
    )


def make(source: Source, directory: Path) -> list[Path]:
    """Without a source package; lintian has nothing to say about the others."""
    sources = fresh(directory) / f"terrace-{source.version}"
    shutil.copytree(source.recipes / "debian" / "debian", sources / "debian")
    tree.copy(source, sources, sources / "debian" / "share")
    (sources / "debian" / "changelog").write_text(_changelog(source), encoding="utf-8")
    jobs = f"parallel={available_cpus()}"
    build = ["dpkg-buildpackage", "--build=binary", "--no-sign", "--no-check-builddeps"]
    build += [f"--host-arch={source.arch}"]
    options = " ".join(filter(None, (os.environ.get("DEB_BUILD_OPTIONS"), jobs)))
    call(build, sources, SOURCE_DATE_EPOCH=source.epoch, DEB_BUILD_OPTIONS=options)
    (changes,) = directory.glob("*.changes")
    call(["lintian", "--fail-on", "error,warning", "--allow-root", str(changes)], directory)
    return sorted(directory.glob("*.deb"))
