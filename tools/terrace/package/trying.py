# SPDX-License-Identifier: MIT OR Apache-2.0
"""Packages in fresh roots of distributions: installed, used by the recipe's use.sh, removed."""

import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from terrace.errors import TerraceError
from terrace.messages import say
from terrace.package.emulation import emulated
from terrace.package.making import Source, call
from terrace.package.sources import try_source

# The archive's name, and its parts that PACKAGES are in. The first compiles the packages.
DEBIAN = {"bookworm": "main", "trixie": "main"}
UBUNTU = {"jammy": "main,universe", "noble": "main,universe"}
UBUNTU_KEYS = Path("/usr/share/keyrings/ubuntu-archive-keyring.gpg")
PACKAGES = ("apt", "gcc", "libc6-dev", "pkgconf", "python3", "python3-venv")

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


def _root_archive(source: Source, suite: str, roots: Path) -> Path:
    """Made once by mmdebstrap."""
    archive = roots / f"{suite}-{source.arch}.tar"
    roots.mkdir(parents=True, exist_ok=True)
    if not archive.exists():
        unfinished = roots / f"unfinished-{archive.name}"
        what = (f"--architectures={source.arch}", f"--components={suites(source)[suite]}")
        options = ("--variant=minbase", f"--include={','.join(PACKAGES)}", "--quiet")
        call(["mmdebstrap", *what, *options, suite, str(unfinished)], roots)
        unfinished.rename(archive)
    return archive


@contextlib.contextmanager
def fresh_root(source: Source, suite: str, roots: Path) -> Iterator[Root]:
    """Unpacked each time."""
    archive = _root_archive(source, suite, roots)
    directory = Path(tempfile.mkdtemp(prefix=f"{suite}-", dir=roots))
    try:
        call(["tar", "--numeric-owner", "-xpf", str(archive)], directory)
        directory.chmod(0o755)
        yield Root(directory)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def try_tar(source: Source, made: list[Path], root: Root) -> None:
    root.bring(*made, source.recipes / "tar" / "use.sh")
    root.run(f"sh use.sh {made[0].name} {source.machine}")


def try_wheel(source: Source, made: list[Path], root: Root) -> None:
    """Without a network."""
    root.bring(*made, source.recipes / "wheel" / "use.sh")
    root.run(
        f"python3 -m venv new; new/bin/pip install --quiet --no-index --no-deps {made[0].name};"
        "sh use.sh /tmp/new/bin/terrace /tmp/new/bin/python;"
        "new/bin/pip uninstall --quiet --yes terrace; test -z $(find new -name *terrace*)"
    )


def try_wheel_for_debugging(source: Source, made: list[Path], directory: Path) -> None:
    """Here, with the extra that findleaks needs."""
    python = f"{directory}/new/bin/python"
    call([sys.executable, "-m", "venv", f"{directory}/new"], directory)
    call([python, "-m", "pip", "install", "--quiet", f"{made[0]}[debug]"], directory)
    use = str(source.recipes / "wheel" / "use.sh")
    call(["sh", use, f"{directory}/new/bin/terrace", python], directory)


def try_deb(source: Source, made: list[Path], root: Root) -> None:
    root.bring(*(p for p in made if "-dbgsym_" not in p.name), source.recipes / "debian/use.sh")
    root.run("sh use.sh")


def try_rpm(source: Source, made: list[Path], root: Root) -> None:
    """Put into the root by this machine's rpm, since Debian has none of the packages they need."""
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


IN_ROOTS: dict[str, Callable[[Source, list[Path], Root], None]] = {
    "tar": try_tar,
    "wheel": try_wheel,
    "deb": try_deb,
    "rpm": try_rpm,
}
HERE: dict[str, Callable[[Source, list[Path], Path], None]] = {  # in an empty directory
    "source": try_source,
    "wheel": try_wheel_for_debugging,
}


def try_everywhere(kind: str, source: Source, made: list[Path], roots: Path) -> None:
    """In a fresh root of each suite, and on this machine; there is no way to try a crate."""
    if kind in IN_ROOTS:
        if os.geteuid() != 0:
            raise TerraceError("package --check makes roots of distributions, which only root can")
        with emulated(source):
            for suite in suites(source):
                with fresh_root(source, suite, roots) as root:
                    IN_ROOTS[kind](source, made, root)
                say(f"{kind}: installed, used and removed in a fresh root of {suite}")
    if kind in HERE and not source.is_cross:
        roots.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=roots) as directory:
            HERE[kind](source, made, Path(directory))
        say(f"{kind}: used on this machine")
