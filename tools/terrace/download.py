# SPDX-License-Identifier: MIT OR Apache-2.0
"""Files whose content is known before, from Debian's archive or elsewhere; cut off, they go on."""

import hashlib
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from terrace.captured import run_tool
from terrace.errors import TerraceError
from terrace.messages import Step, progress

_BLOCK = 1 << 20  # bytes read at a time


def mirror_among(index_targets: str) -> str | None:
    """The Debian archive among lines of 'URI ORIGIN SUITE COMPONENT'; not the one of security."""
    for line in index_targets.splitlines():
        uri, origin, suite, component = (line.split() + [""] * 4)[:4]
        if origin == "Debian" and component == "main" and "security" not in suite:
            return uri.rstrip("/")
    return None


def host_mirror() -> str:
    """The mirror that the host's own apt uses."""
    answer = run_tool(
        [
            *("apt-get", "indextargets", "--format"),
            "$(REPO_URI) $(ORIGIN) $(CODENAME) $(COMPONENT)",
            "Created-By: Packages",
        ]
    )
    mirror = mirror_among(answer)
    if mirror is None:
        raise TerraceError("`test vm` takes its guests from Debian's archive; apt has none here")
    return mirror


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def _copy_rest(url: str, partial: Path, total: int, step: Step) -> None:
    """Appends to the partial file what it lacks, if the server can; else begins again."""
    done = partial.stat().st_size if partial.exists() else 0
    headers = {"Range": f"bytes={done}-"} if done else {}
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=60) as answer:
        resumed = done > 0 and answer.status == 206
        done = done if resumed else 0
        with partial.open("ab" if resumed else "wb") as file:
            while block := answer.read(_BLOCK):
                file.write(block)
                done += len(block)
                step.update(done >> 20, total >> 20)


@dataclass(frozen=True)
class Download:
    """A file of which the content is known before."""

    name: str
    url: str
    bytes: int
    sha256: str
    advice: str


def download(directory: Path, wanted: Download) -> Path:
    """The file in `directory`, checked; a download that was cut off goes on where it ended."""
    file = directory / wanted.name
    if file.exists():
        return file
    partial = file.with_suffix(".partial")
    partial.parent.mkdir(parents=True, exist_ok=True)
    if partial.exists() and partial.stat().st_size >= wanted.bytes:
        partial.unlink()
    try:
        with progress(f"fetching {wanted.name} (MiB)") as step:
            _copy_rest(wanted.url, partial, wanted.bytes, step)
            step.finish()
    except (urllib.error.URLError, OSError) as error:
        raise TerraceError(
            f"{wanted.url}: {error}\nThe same command goes on from here; {wanted.advice}"
        ) from None
    found = _digest(partial)
    if found != wanted.sha256:
        partial.unlink()
        raise TerraceError(
            f"{wanted.url} is not the file it should be: SHA-256 {found}, expected {wanted.sha256}"
        )
    partial.rename(file)
    return file
