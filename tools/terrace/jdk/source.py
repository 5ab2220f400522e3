# SPDX-License-Identifier: MIT OR Apache-2.0
"""`terrace jdk`: the source of HotSpot is fetched, unpacked and patched, each step once."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from terrace.captured import run_tool
from terrace.checkout import Checkout
from terrace.download import Download, download, host_mirror
from terrace.messages import say


@dataclass(frozen=True)
class Source:
    """What integrations/hotspot/source.txt says."""

    version: str
    archive: str
    bytes: int
    sha256: str
    unpacked: str

    @property
    def name(self) -> str:
        return self.archive.rpartition("/")[2]


def integration(checkout: Checkout) -> Path:
    return checkout.root / "integrations" / "hotspot"


def work_directory(checkout: Checkout) -> Path:
    """$TERRACE_JDK_DIR, else build/jdk: everything that `jdk` makes is below it."""
    return Path(os.environ.get("TERRACE_JDK_DIR") or checkout.build / "jdk").absolute()


def read_source(checkout: Checkout) -> Source:
    text = (integration(checkout) / "source.txt").read_text(encoding="utf-8")
    lines = (line.split() for line in text.splitlines() if line and not line.startswith("#"))
    words = {words[0]: words[1] for words in lines}
    return Source(
        words["version"],
        words["archive"],
        int(words["bytes"]),
        words["sha256"],
        words["unpacked"],
    )


def queue(checkout: Checkout) -> list[Path]:
    """The patches, in the order in which they apply."""
    return sorted((integration(checkout) / "patches").glob("*.diff"))


def address(source: Source) -> str:
    """$TERRACE_JDK_SOURCE, a path or a URL; else the archive that the host's apt uses."""
    chosen = os.environ.get("TERRACE_JDK_SOURCE")
    if chosen:
        return chosen if "://" in chosen else Path(chosen).absolute().as_uri()
    return f"{host_mirror()}/{source.archive}"


def fetch(checkout: Checkout, source: Source) -> Path:
    """The archive of the source."""
    directory = work_directory(checkout)
    archive = directory / source.name
    if archive.exists():
        return archive  # without asking apt where it is from
    advice = f"TERRACE_JDK_SOURCE names another path or URL of {source.name}"
    url = address(source)
    return download(directory, Download(source.name, url, source.bytes, source.sha256, advice))


def fetch_for_tests(checkout: Checkout, name: str) -> Path:
    """A file of integrations/hotspot/tests.txt from the archive that apt uses."""
    text = (integration(checkout) / "tests.txt").read_text(encoding="utf-8")
    rows = [line.split() for line in text.splitlines() if line and not line.startswith("#")]
    row = next(row for row in rows if row[0] == name)
    _, archive, size, sha256 = row
    directory = work_directory(checkout) / "downloads"
    file = directory / archive.rpartition("/")[2]
    if file.exists():
        return file
    advice = f"or it may be put into {directory} by hand"
    url = f"{host_mirror()}/{archive}"
    return download(directory, Download(file.name, url, int(size), sha256, advice))


def unpack(checkout: Checkout, source: Source, suffix: str = "") -> Path:
    """A source tree, of that suffix; a tree that is there is complete."""
    tree = work_directory(checkout) / f"{source.unpacked}{suffix}"
    if tree.is_dir():
        return tree
    archive = fetch(checkout, source)
    scratch = tree.with_name(f"{tree.name}.unpacking")
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    say("unpacking the source")
    run_tool(["tar", "--no-same-owner", "-xf", str(archive), "-C", str(scratch)])
    (scratch / source.unpacked).rename(tree)
    scratch.rmdir()
    return tree


def touched(patch: str) -> list[tuple[str, bool]]:
    """The files of a patch, and whether it makes them."""
    files = []
    new = False
    for line in patch.splitlines():
        if line.startswith("--- "):
            new = line.startswith("--- /dev/null")
        elif line.startswith("+++ b/"):
            files.append((line[len("+++ b/") :].split("\t")[0], new))
    return files


def touched_by(patches: list[str]) -> dict[str, bool]:
    """The files of a queue, and whether it makes them: the first patch that has a file tells."""
    files: dict[str, bool] = {}
    for name, new in (pair for patch in patches for pair in touched(patch)):
        files.setdefault(name, new)
    return files


def touched_by_queue(checkout: Checkout) -> dict[str, bool]:
    return touched_by([path.read_text(encoding="utf-8") for path in queue(checkout)])


def _originals(tree: Path, kept: Path, patches: list[str]) -> None:
    """Keeps a file as it was unpacked, before a patch of any queue has touched it."""
    for name, new in touched_by(patches).items():
        copy = kept / name
        if not new and not copy.exists():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(tree / name, copy)


def _contents(directory: Path) -> dict[str, bytes]:
    files = (path for path in directory.rglob("*") if path.is_file())
    return {str(path.relative_to(directory)): path.read_bytes() for path in files}


def apply(checkout: Checkout, tree: Path) -> int:
    """Brings the tree to what the queue says, from whichever queue it had; files that change.

    Applied to copies of the originals, so that a file that stays the same keeps its date and is
    not compiled again.
    """
    beside = tree.with_name(f"{tree.name}.patched")
    kept, scratch, note = beside / "originals", beside / "scratch", beside / "made"
    paths = queue(checkout)
    _originals(tree, kept, [path.read_text(encoding="utf-8") for path in paths])
    shutil.rmtree(scratch, ignore_errors=True)
    if kept.is_dir():
        shutil.copytree(kept, scratch)
    scratch.mkdir(parents=True, exist_ok=True)
    for path in paths:
        quietly = ("--batch", "--no-backup-if-mismatch", "--fuzz=0", "-p1")
        run_tool(["patch", *quietly, "-d", str(scratch), "-i", str(path)])
    wanted, originals = _contents(scratch), _contents(kept) if kept.is_dir() else {}
    made = note.read_text(encoding="utf-8").split("\n") if note.exists() else []
    note.write_text("\n".join(sorted(set(wanted) - set(originals))), encoding="utf-8")
    changed = 0
    for name in {*made, *wanted} - {""}:
        file = tree / name
        content = wanted.get(name)
        if content is None:
            file.unlink(missing_ok=True)
        elif not file.exists() or file.read_bytes() != content:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
            changed += 1
    return changed
