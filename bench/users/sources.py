# SPDX-License-Identifier: MIT OR Apache-2.0
"""Sources of the programs: fetched from the archive that the host's apt uses, of pinned versions, with pinned checksums."""

import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from report import ROOT

sys.path.append(str(ROOT / "tools"))

from terrace.captured import run_tool
from terrace.download import Download, download, host_mirror

INTEGRATION = ROOT / "integrations" / "users"


@dataclass(frozen=True)
class Source:
    name: str
    version: str
    archive: str
    bytes: int
    sha256: str


def read(text: str) -> dict[str, Source]:
    """The lines of sources.txt by name."""
    rows = (line.split() for line in text.splitlines() if line and not line.startswith("#"))
    found = (Source(name, version, archive, int(size), sha256) for name, version, archive, size, sha256 in rows)
    return {source.name: source for source in found}


def pinned(name: str) -> Source:
    return read((INTEGRATION / "sources.txt").read_text(encoding="utf-8"))[name]


def work_directory() -> Path:
    """$TERRACE_USERS_DIR, else build/users: everything that is fetched and built lies there."""
    return Path(os.environ.get("TERRACE_USERS_DIR") or ROOT / "build" / "users").absolute()


def archive_of(source: Source, directory: Path) -> Path:
    """The archive, fetched unless it is there."""
    name = source.archive.rpartition("/")[2]
    if (directory / name).exists():
        return directory / name  # without asking apt where it is from
    advice = f"or {name} may be put into {directory} by hand"
    return download(directory, Download(name, f"{host_mirror()}/{source.archive}", source.bytes, source.sha256, advice))


def unpacked(name: str) -> Path:
    """The program's source tree, which nobody writes to: a tree that is there is complete."""
    source = pinned(name)
    tree = work_directory() / f"{name}-{source.version}"
    if tree.is_dir():
        return tree
    archive = archive_of(source, work_directory() / "downloads")
    scratch = tree.with_name(f"{tree.name}.unpacking")
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    run_tool(["tar", "--no-same-owner", "--strip-components=1", "-xf", str(archive), "-C", str(scratch)])
    scratch.rename(tree)
    return tree
