# SPDX-License-Identifier: MIT OR Apache-2.0
"""Distribution packages: what a subcommand needs (packages.txt), what is missing, installing it."""

import glob
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from terrace.captured import run_captured, watched
from terrace.errors import TerraceError
from terrace.messages import progress, say

# Installed for every subcommand; without REQUIRED nothing can be built. Without those of `python`
# the environment is not made, and tables are plain.
ESSENTIAL = ("python", "build")
REQUIRED = ("build",)


@dataclass(frozen=True)
class Package:
    """One line of packages.txt."""

    purpose: str
    name: str  # the newest, or the newest|its|former names
    condition: str
    otherwise: str = ""

    @property
    def names(self) -> list[str]:
        """What distributions call it; the first is the one to tell people."""
        return self.name.split("|")

    @property
    def minimum(self) -> tuple[int, ...]:
        """The version after '>=' in the condition, () if there is none."""
        return parse_version(self.condition.partition(">=")[2])

    @property
    def fallback_extra(self) -> str:
        """The extra of the Python package that stands in for it, "" if there is none."""
        return self.otherwise.removeprefix("pip:")


def parse_version(text: str) -> tuple[int, ...]:
    """'cmake version 3.25.1' and '2:3.25.1-1' -> (3, 25, 1)."""
    found = re.search(r"\d+(?:\.\d+)+", text) or re.search(r"\d+", text)
    return tuple(int(part) for part in found.group().split(".")) if found else ()


def read_packages(text: str | None = None) -> list[Package]:
    """All lines of packages.txt."""
    if text is None:
        text = Path(__file__).with_name("packages.txt").read_text(encoding="utf-8")
    text = text.replace("{python}", f"{sys.version_info.major}.{sys.version_info.minor}")
    lines = (line.partition("#")[0].split() for line in text.splitlines())
    return [Package(*fields) for fields in lines if fields]


def command_version(command: str) -> tuple[int, ...]:
    """What `COMMAND --version` says first; () if it can not be run."""
    try:
        answer = run_captured([command, "--version"])
    except OSError:
        return ()
    return parse_version(answer.stdout)


def is_present(package: Package) -> bool:
    """Whether the condition of the line holds."""
    kind, _, subject = package.condition.partition(":")
    if kind == "command":
        command = shutil.which(subject.partition(">=")[0])
        return command is not None and (
            not package.minimum or command_version(command) >= package.minimum
        )
    if kind == "file":
        return bool(glob.glob(subject))
    if kind == "module":
        return importlib.util.find_spec(subject) is not None
    raise ValueError(f"packages.txt: {package.condition}")


def missing_packages(
    purposes: tuple[str, ...], extras: frozenset[str] = frozenset()
) -> list[Package]:
    """Each once, in the order of the file; an installed extra stands in for its package."""
    wanted: dict[str, Package] = {}
    for package in read_packages():
        if package.purpose in purposes and package.fallback_extra not in extras:
            wanted.setdefault(package.name, package)
    return [p for p in wanted.values() if not is_present(p)]


def _candidate_versions(names: list[str]) -> dict[str, tuple[int, ...]]:
    """What the archive offers; names that it does not have are absent."""
    environment = {**os.environ, "LC_ALL": "C"}
    answer = run_captured(["apt-cache", "policy", *names], environment)
    versions: dict[str, tuple[int, ...]] = {}
    name = ""
    for line in answer.stdout.splitlines():
        if not line.startswith(" "):
            name = line.rstrip(":")
        elif line.strip().startswith("Candidate:") and "(none)" not in line:
            # An epoch ("2:") is no part of the version that the program itself would report.
            versions[name] = parse_version(line.partition(":")[2].strip().rpartition(":")[2])
    return versions


def _superuser() -> list[str] | None:
    """The prefix for commands of the superuser; None if there is no way to become it."""
    if os.geteuid() == 0:
        return []
    if shutil.which("sudo") is None:
        return None
    # Without a terminal nobody can type a password: fail instead of waiting for it.
    can_ask = sys.stdin is not None and sys.stdin.isatty() and not os.environ.get("CI")
    prefix = ["sudo"] if can_ask else ["sudo", "-n"]
    if subprocess.run([*prefix, "true"], check=False).returncode != 0:
        return None
    return prefix


def _apt_install(prefix: list[str], names: list[str]) -> str:
    """Runs apt-get install under a progress bar; returns what it said if it failed, else ""."""
    settings = ["env", "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C.UTF-8"]
    # A descriptor of its own for the status: dpkg closes it in the packages' scripts, which need
    # their stdout; opened behind sudo, which closes all but the first three.
    apt = [*prefix, *settings, "sh", "-c", 'exec apt-get "$@" 3>&1', "sh"]
    options = ("APT::Status-Fd=3", "Dpkg::Use-Pty=0", "Dpkg::Options::=--force-confold")
    command = [*apt, "install", "-y", "-q", "--no-install-recommends"]
    command += [word for option in options for word in ("-o", option)]
    command += names
    output: list[str] = []
    with (
        progress("installing distribution packages") as step,
        watched(command) as process,
    ):
        for line in process.stdout or ():
            # dlstatus:3:41.5:Retrieving file 3 of 9 / pmstatus:cmake:60.0:Unpacking cmake
            status = re.match(r"(dl|pm)status:[^:]*:([0-9.]+):(.*)", line)
            if status is None:
                if not line.startswith(("pmerror:", "pmconffile:")):
                    output.append(line)
                continue
            half = 0 if status.group(1) == "dl" else 50
            step.update(half + int(float(status.group(2)) / 2), 100, status.group(3))
        if process.wait() == 0:
            step.finish()
    return "" if process.returncode == 0 else "".join(output[-20:]) or "apt-get failed\n"


def _noted(note: Path) -> set[str]:
    try:
        return set(note.read_text(encoding="utf-8").split())
    except OSError:
        return set()


def _update_lists(prefix: list[str]) -> bool:
    command = [*prefix, "apt-get", "update", "-qq"]
    nothing = subprocess.DEVNULL
    return subprocess.run(command, stdin=nothing, stdout=nothing, check=False).returncode == 0


def _offered_name(package: Package, offered: dict[str, tuple[int, ...]]) -> str:
    """The first of its names that the archive has in a version that will do; "" if none."""
    good = (n for n in package.names if n in offered and offered[n] >= package.minimum)
    return next(good, "")


def _words(missing: list[Package]) -> str:
    """Every line about what is missing names it in these words."""
    return " ".join(p.names[0] for p in missing)


def _install_by_apt(missing: list[Package], note: Path) -> None:
    """Installs those that the distribution offers; the names of the others are left in the note."""
    prefix = _superuser()
    if prefix is None:
        return  # what is missing is said by install()
    updated = _update_lists(prefix)
    if not updated:
        say("apt-get update failed, trying with the package lists at hand")
    offered = _candidate_versions([name for p in missing for name in p.names])
    chosen = {p: name for p in missing if (name := _offered_name(p, offered))}
    left_out = [p.name for p in missing if p not in chosen]
    if left_out and updated:
        note.write_text(" ".join(sorted({*_noted(note), *left_out})) + "\n", encoding="utf-8")
    # All together; if that fails at least what nothing works without.
    essential = {p: name for p, name in chosen.items() if p.purpose in ESSENTIAL}
    for attempt in (chosen, essential):
        if not attempt:
            return
        names = list(attempt.values())
        say("installing with apt-get: " + " ".join(names), always=True)
        failure = _apt_install(prefix, names)
        if not failure:
            return
        say("apt-get install failed:\n" + failure.rstrip(), always=True)


def install(
    purposes: tuple[str, ...], note: Path, extras: frozenset[str] = frozenset()
) -> tuple[str, ...]:
    """Installs what is missing for the purposes; returns the extras that have to stand in.

    What `run` needs and can not be had is an error; the rest is reported, its tests are skipped.
    The note names what the distribution was found not to offer: it is not looked for again.
    """
    missing = missing_packages(purposes, extras)
    wanted = [p for p in missing if p.purpose in ESSENTIAL or p.name not in _noted(note)]
    if wanted and shutil.which("apt-get"):
        _install_by_apt(wanted, note)
        missing = missing_packages(purposes, extras)
    lost = [p for p in missing if not p.fallback_extra]
    required = [p for p in lost if p.purpose in REQUIRED]
    if required:
        raise TerraceError(
            f"missing, and nothing can be built without: {_words(required)}\n"
            f"Please run as root: apt-get install {_words(required)}"
        )
    if lost:
        say(f"going on without: {_words(lost)}")
    return tuple(p.fallback_extra for p in missing if p.fallback_extra)
