# SPDX-License-Identifier: MIT OR Apache-2.0
"""Packages of other Debian suites and architectures for guests; the host's apt is left as it is.

Each pair of suite and architecture has apt directories of its own under build/vm/apt, with an
empty dpkg status: apt then resolves a guest's packages as for an empty machine, and only downloads.
"""

import functools
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from terrace.captured import run_tool
from terrace.download import host_mirror
from terrace.messages import say

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")

# Suites that stand on another one.
_BELOW = {"trixie-backports": "trixie", "experimental": "sid"}


def sources(suite: str, mirror: str) -> str:
    """The sources.list of a suite."""
    suites = [suite, *([_BELOW[suite]] if suite in _BELOW else [])]
    return "".join(f"deb [signed-by={KEYRING}] {mirror} {name} main\n" for name in suites)


def installed_by(simulation: str) -> dict[str, str]:
    """Name -> version of what `apt-get -s install` would install."""
    return dict(re.findall(r"^Inst (\S+) \((\S+) ", simulation, re.MULTILINE))


def _compare(one: str, other: str) -> int:
    """As dpkg orders versions: 7.3~rc7 is before 7.3."""
    command = ["dpkg", "--compare-versions", one, "gt", other]
    if subprocess.run(command, check=False).returncode == 0:
        return 1
    return 0 if one == other else -1


def newest(versions: dict[str, str]) -> str:
    """The key of the highest version; the first of several."""
    return max(versions, key=lambda key: functools.cmp_to_key(_compare)(versions[key]))


@dataclass(frozen=True)
class Archive:
    """One suite for one architecture (Debian's name: amd64, arm64)."""

    directory: Path
    suite: str
    architecture: str

    @property
    def _own(self) -> Path:
        return self.directory / f"{self.suite}-{self.architecture}"

    def _options(self) -> list[str]:
        own = self._own
        settings = {
            "Dir::State": own / "state",
            "Dir::State::status": own / "status",
            "Dir::Cache": own / "cache",
            "Dir::Etc::sourcelist": own / "sources.list",
            "Dir::Etc::sourceparts": "/dev/null",
            "Dir::Etc::preferences": "/dev/null",
            "Dir::Etc::preferencesparts": "/dev/null",
            "APT::Architecture": self.architecture,
            "APT::Architectures": self.architecture,
            "APT::Default-Release": self.suite,
            "APT::Install-Recommends": "false",
            "APT::Sandbox::User": "",
            "Acquire::Languages": "none",
            "Debug::NoLocking": "true",
        }
        return [word for key, value in settings.items() for word in ("-o", f"{key}={value}")]

    def _apt_get(self, *arguments: str, cwd: Path | None = None) -> str:
        return run_tool(
            ["apt-get", "-q", *self._options(), *arguments], cwd=str(cwd) if cwd else None
        )

    def update(self) -> None:
        """Fetches the package lists, once."""
        done = self._own / "updated"
        if done.exists():
            return
        say(f"package lists of {self.suite} for {self.architecture}")
        for name in ("state/lists/partial", "cache/archives/partial"):
            (self._own / name).mkdir(parents=True, exist_ok=True)
        (self._own / "status").touch()
        (self._own / "sources.list").write_text(sources(self.suite, host_mirror()), "utf-8")
        self._apt_get("update")
        done.touch()

    def fetch_closure(self, names: tuple[str, ...]) -> list[Path]:
        """The packages and all that they depend on."""
        self.update()
        say(f"packages of {self.suite} for {self.architecture}")
        for old in (self._own / "cache" / "archives").glob("*.deb"):
            old.unlink()
        self._apt_get("install", "--download-only", "-y", *names)
        return sorted((self._own / "cache" / "archives").glob("*.deb"))

    def kernel_packages(self) -> dict[str, str]:
        """Name -> version of the packages that may hold the kernel's image (not its modules)."""
        self.update()
        chosen = installed_by(self._apt_get("install", "-s", f"linux-image-{self.architecture}"))
        return {n: v for n, v in chosen.items() if re.match(r"linux-(image|binary)-\d", n)}

    def fetch_kernel(self) -> list[Path]:
        """The packages that may hold the image of the suite's kernel."""
        images = self.kernel_packages()
        say(f"kernel of {self.suite} for {self.architecture}")
        target = self._own / "kernel"
        target.mkdir(exist_ok=True)
        for old in target.glob("*.deb"):
            old.unlink()
        self._apt_get("download", *(f"{n}={v}" for n, v in images.items()), cwd=target)
        return sorted(target.glob("*.deb"))
