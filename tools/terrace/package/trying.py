# SPDX-License-Identifier: MIT OR Apache-2.0
"""Packages in fresh Debian 12 roots: installed, used by the recipe's use.sh, removed."""

import contextlib
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from terrace.errors import TerraceError
from terrace.package.making import Source, call
from terrace.package.sources import try_source

SUITE = "bookworm"
PACKAGES = ("gcc", "libc6-dev", "pkgconf", "python3", "python3-venv")

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
        inside = f"cd /tmp; export HOME=/root LC_ALL=C.UTF-8; {script}"
        command = ["unshare", "--mount", "--pid", "--fork", "--kill-child"]
        clean = ["env", "-i", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]
        call([*command, *clean, "sh", "-e", "-c", _ENTER, str(self.path), inside], self.path)


@contextlib.contextmanager
def fresh_root(roots: Path) -> Iterator[Root]:
    """Made once by mmdebstrap, unpacked each time."""
    if os.geteuid() != 0:
        raise TerraceError("package --check makes a Debian root, which only root can")
    archive = roots / f"{SUITE}.tar"
    roots.mkdir(parents=True, exist_ok=True)
    if not archive.exists():
        unfinished = roots / f"unfinished-{SUITE}.tar"
        options = ("--variant=minbase", f"--include={','.join(PACKAGES)}", "--quiet")
        call(["mmdebstrap", *options, SUITE, str(unfinished)], roots)
        unfinished.rename(archive)
    directory = Path(tempfile.mkdtemp(prefix=f"{SUITE}-", dir=roots))
    try:
        call(["tar", "--numeric-owner", "-xpf", str(archive)], directory)
        directory.chmod(0o755)
        yield Root(directory)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def try_tar(source: Source, made: list[Path], roots: Path) -> None:
    with fresh_root(roots) as root:
        root.bring(*made, source.recipes / "tar" / "use.sh")
        root.run(f"sh use.sh {made[0].name} {platform.machine()}")


def try_wheel(source: Source, made: list[Path], roots: Path) -> None:
    """In the root without a network; here with the extra that findleaks needs."""
    use = source.recipes / "wheel" / "use.sh"
    with fresh_root(roots) as root:
        root.bring(*made, use)
        root.run(
            f"python3 -m venv new; new/bin/pip install --quiet --no-index --no-deps {made[0].name};"
            "sh use.sh /tmp/new/bin/terrace /tmp/new/bin/python;"
            "new/bin/pip uninstall --quiet --yes terrace; test -z $(find new -name *terrace*)"
        )
    roots.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=roots) as directory:
        python = f"{directory}/new/bin/python"
        call([sys.executable, "-m", "venv", f"{directory}/new"], roots)
        call([python, "-m", "pip", "install", "--quiet", f"{made[0]}[debug]"], roots)
        call(["sh", str(use), f"{directory}/new/bin/terrace", python], roots)


def try_deb(source: Source, made: list[Path], roots: Path) -> None:
    with fresh_root(roots) as root:
        root.bring(*(p for p in made if "-dbgsym_" not in p.name), source.recipes / "debian/use.sh")
        root.run("sh use.sh")


def try_rpm(source: Source, made: list[Path], roots: Path) -> None:
    """Put into the root by this machine's rpm, since Debian has none of the packages they need."""
    with fresh_root(roots) as root:
        before = sorted(root.path.rglob("*terrace*"))
        rpm = ["rpm", "--root", str(root.path)]
        call([*rpm, "--initdb"], root.path)
        call([*rpm, "--install", "--nodeps", *map(str, made)], root.path)
        root.bring(source.recipes / "rpm" / "use.sh")
        root.run("sh use.sh")
        call([*rpm, "--erase", "--nodeps", *(path.name[:-4] for path in made)], root.path)
        left = sorted(set(root.path.rglob("*terrace*")) - set(before))
        if left:
            raise TerraceError(f"rpm: removed, and these are left: {' '.join(map(str, left))}")


TRIES: dict[str, Callable[[Source, list[Path], Path], None]] = {
    "source": try_source,
    "tar": try_tar,
    "wheel": try_wheel,
    "deb": try_deb,
    "rpm": try_rpm,
}
