# SPDX-License-Identifier: MIT OR Apache-2.0
"""Fresh roots of distributions, without anything of ours."""

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from terrace.messages import say
from terrace.package.making import Source, call

# The archive's name, and its parts that PACKAGES are in. The first compiles the packages.
DEBIAN = {"bookworm": "main", "trixie": "main"}
UBUNTU = {"jammy": "main,universe", "noble": "main,universe"}
UBUNTU_KEYS = Path("/usr/share/keyrings/ubuntu-archive-keyring.gpg")
PACKAGES = (
    *("apt", "cmake", "gcc", "libc6-dev", "make", "pkgconf", "python3", "python3-venv"),
    *("python3-numpy", "python3-pyelftools", "python3-rich", "python3-scipy"),
)

# With a /proc and process numbers of its own, so that nothing outlives it.
_ENTER = 'mount -t proc proc "$0/proc" && exec chroot "$0" sh -e -c "$1"'


@dataclass(frozen=True)
class Root:
    """A Debian without anything of ours."""

    path: Path

    def bring(self, *files: Path) -> None:
        for file in files:
            shutil.copy(file, self.path / "tmp")

    def run(self, script: str) -> None:
        """In it, in /tmp, without this machine's environment."""
        inside = (
            f"cd /tmp; export HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive; {script}"
        )
        command = ["unshare", "--mount", "--pid", "--fork", "--kill-child"]
        clean = ["env", "-i", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]
        call([*command, *clean, "sh", "-e", "-c", _ENTER, str(self.path), inside], self.path)


def suites(source: Source) -> dict[str, str]:
    """Of another architecture one: all of it is emulated there."""
    if source.is_cross:
        return {"bookworm": DEBIAN["bookworm"]}
    if UBUNTU_KEYS.exists():
        return DEBIAN | UBUNTU
    say(f"not tried on Ubuntu: there is no {UBUNTU_KEYS} (package ubuntu-keyring)")
    return DEBIAN


def _made_once(source: Source, suite: str, archive: Path, *options: str) -> Path:
    """By mmdebstrap."""
    archive.parent.mkdir(parents=True, exist_ok=True)
    if not archive.exists():
        unfinished = archive.with_name(f"unfinished-{archive.name}")
        what = (f"--architectures={source.arch}", f"--components={suites(source)[suite]}")
        command = ["mmdebstrap", "--quiet", *what, *options, suite, str(unfinished)]
        call(command, archive.parent)
        unfinished.rename(archive)
    return archive


def full_archive(source: Source, suite: str, roots: Path) -> Path:
    """With all that our packages are tried with."""
    options = ("--variant=minbase", f"--include={','.join(PACKAGES)}")
    return _made_once(source, suite, roots / f"{suite}-{source.arch}.tar", *options)


def bare_archive(source: Source, roots: Path, name: str, packages: str) -> Path:
    """The files of these packages and nothing else: nothing has been configured."""
    options = ("--variant=extract", f"--include={packages}")
    return _made_once(source, "bookworm", roots / f"{name}-{source.arch}.tar", *options)


@contextlib.contextmanager
def fresh_root(source: Source, suite: str, roots: Path) -> Iterator[Root]:
    """Unpacked each time."""
    archive = full_archive(source, suite, roots)
    directory = Path(tempfile.mkdtemp(prefix=f"{suite}-", dir=roots))
    try:
        call(["tar", "--numeric-owner", "-xpf", str(archive)], directory)
        directory.chmod(0o755)
        yield Root(directory)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
