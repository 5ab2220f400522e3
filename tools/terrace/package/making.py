# SPDX-License-Identifier: MIT OR Apache-2.0
"""What all packages share: libraries to put in, the time that files bear, sums of their bytes."""

import hashlib
import os
import platform
import re
import shutil
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from terrace import build
from terrace.captured import run_captured, said
from terrace.checkout import Checkout
from terrace.errors import TerraceError

# What `cmake --install` of the preset release wants, and what `terrace record` needs.
TARGETS = (
    *("terrace_shared", "terrace_static", "terrace_hardened", "terrace_cs_archive"),
    *("terrace_lab_archive", "terrace_umem_api", "terrace_umem_malloc", "terrace_umem_static"),
)

MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}  # by Debian's name


@dataclass(frozen=True)
class Source:
    """What a package is made of."""

    root: Path  # of the checkout
    built: Path  # where its libraries are
    machine: str = field(default_factory=platform.machine)  # that runs them

    @property
    def arch(self) -> str:
        """What Debian calls the machine."""
        return next(arch for arch, machine in MACHINES.items() if machine == self.machine)

    @property
    def is_cross(self) -> bool:
        return self.machine != platform.machine()

    @property
    def musl(self) -> Path | None:
        """Where the library for musl is; there is a preset for this machine's x86-64 alone."""
        native = self.machine == "x86_64" and not self.is_cross
        return self.built.with_name("release-musl") if native else None

    @property
    def strip(self) -> str:
        return f"{self.machine}-linux-gnu-strip" if self.is_cross else "strip"

    @property
    def version(self) -> str:
        found = re.search(
            r"project\(terrace VERSION (\S+)",
            (self.root / "CMakeLists.txt").read_text(encoding="utf-8"),
        )
        if found is None:
            raise TerraceError("CMakeLists.txt names no version")
        return found.group(1)

    @property
    def recipes(self) -> Path:
        return self.root / "packaging"

    @property
    def epoch(self) -> str:
        """SOURCE_DATE_EPOCH: when the last commit was made; the caller's wins."""
        chosen = os.environ.get("SOURCE_DATE_EPOCH")
        return chosen or call(["git", "log", "-1", "--format=%ct"], self.root).strip()


def call(command: list[str], cwd: Path, **variables: str) -> str:
    """The output; a failure is one error with the last lines."""
    environment = {**os.environ, "LC_ALL": "C.UTF-8", "TZ": "UTC", **variables}
    try:
        done = run_captured(command, environment, cwd=cwd)
    except OSError as error:
        raise TerraceError(f"{command[0]}: {error.strerror}") from None
    if done.returncode != 0:
        tail = "\n".join(said(done).splitlines()[-40:])
        raise TerraceError(f"{' '.join(command)} failed ({done.returncode}):\n{tail}")
    return done.stdout


def known_files(root: Path, *patterns: str) -> list[str]:
    """Those that git knows or would add, as they are now."""
    known = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *patterns]
    return [name for name in call(known, root).split("\0") if name and (root / name).is_file()]


def source_for(checkout: Checkout, machine: str = platform.machine()) -> Source:
    """Where build_libraries() puts its libraries."""
    preset = "release" if machine == platform.machine() else f"release-{machine}"
    return Source(checkout.root, checkout.build / preset, machine)


def build_libraries(checkout: Checkout, source: Source, musl: bool) -> None:
    """As the sources are now, by the presets that have the directories' names."""
    wanted = [source.built, *([source.musl] if musl and source.musl else [])]
    with checkout.locked():
        for built in wanted:
            if not (built / "build.ninja").exists():
                options = {"TERRACE_TESTS": "OFF", "TERRACE_BENCH": "OFF"}
                build.configure(checkout, built.name, options)
            build.compile_targets(checkout, built.name, TARGETS)


def fresh(directory: Path) -> Path:
    """An empty directory."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    return directory


def archive(source: Source, result: Path, directory: Path, member: str, *options: str) -> Path:
    """The same bytes for the same files."""
    owner = ("--owner=0", "--group=0", "--numeric-owner", "--mode=u=rwX,go=rX")
    order = ("--format=gnu", "--sort=name", f"--mtime=@{source.epoch}")
    call(["tar", *order, *owner, *options, "-cf", str(result), member], directory)
    return result


def pack(source: Source, tree: Path, name: str) -> Path:
    """NAME.tar.gz beside the tree, which is its top."""
    result = tree.with_name(f"{name}.tar.gz")
    gzip = "--use-compress-program=gzip -n -9"
    return archive(source, result, tree.parent, tree.name, gzip)


def sums(files: Iterable[Path]) -> dict[str, str]:
    """SHA-256 by name."""
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
