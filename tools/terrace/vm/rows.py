# SPDX-License-Identifier: MIT OR Apache-2.0
"""The matrix of `terrace test vm`: kernel, libc and machine of each guest, in order."""

import re
from dataclasses import dataclass

from terrace.errors import TerraceError

# The newest kernel of the archive is the newest of these suites'.
NEWEST = "newest"
NEWEST_AMONG = ("trixie-backports", "sid", "experimental")

DEBIAN_NAME = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclass(frozen=True)
class Machine:
    """What qemu is asked for and the guest must find. Each die has a last-level cache."""

    name: str
    sockets: int = 1
    dies: int = 1
    cores: int = 1

    @property
    def cpus(self) -> int:
        return self.sockets * self.dies * self.cores

    @property
    def last_level_caches(self) -> int:
        return self.sockets * self.dies

    @property
    def nodes(self) -> int:
        return self.sockets

    @property
    def smp(self) -> str:
        text = f"{self.cpus},sockets={self.sockets},cores={self.cores},threads=1"
        return f"{text},dies={self.dies}" if self.dies > 1 else text


ONE = Machine("1 CPU")
FOUR = Machine("4 CPUs", cores=4)
SIXTEEN = Machine("16 CPUs", cores=16)
TWO_SOCKETS = Machine("8 CPUs, 2 sockets, 4 LLCs, 2 nodes", sockets=2, dies=2, cores=2)


@dataclass(frozen=True)
class Row:
    """One guest: suites of its kernel and its libc, ISA, machine.

    `brief`: only the tests that depend most on the number of CPUs, and on how kernel and libc get on
    with each other. One guest of each kernel has all.
    """

    kernel: str
    libc: str
    isa: str
    machine: Machine
    brief: bool = False

    @property
    def name(self) -> str:
        machine = re.sub(r"[^a-z0-9]+", "-", self.machine.name.lower()).strip("-")
        return f"{self.isa}.{self.kernel}.{self.libc}.{machine}"


# The most telling ones first: a run that is cut short has those.
ROWS = (
    Row(NEWEST, "trixie", "x86_64", FOUR),
    Row("trixie", "trixie", "x86_64", FOUR),
    Row("bookworm", "bookworm", "x86_64", FOUR),
    Row(NEWEST, "trixie", "aarch64", FOUR, brief=True),
    Row("trixie", "trixie", "aarch64", FOUR, brief=True),
    Row("bookworm", "bookworm", "aarch64", FOUR, brief=True),
    Row(NEWEST, "trixie", "x86_64", TWO_SOCKETS, brief=True),
    Row(NEWEST, "bookworm", "x86_64", FOUR, brief=True),
    Row(NEWEST, "bookworm", "aarch64", FOUR, brief=True),
    Row(NEWEST, "trixie", "x86_64", SIXTEEN, brief=True),
    Row("sid", "sid", "x86_64", FOUR, brief=True),
    Row("bookworm", "bookworm", "x86_64", TWO_SOCKETS, brief=True),
    Row(NEWEST, "trixie", "x86_64", ONE, brief=True),
    Row("sid", "bookworm", "x86_64", FOUR, brief=True),
    Row(NEWEST, "trixie", "aarch64", SIXTEEN, brief=True),
    Row("bookworm", "trixie", "x86_64", FOUR, brief=True),
    Row(NEWEST, "trixie", "aarch64", ONE, brief=True),
    Row("trixie", "trixie", "x86_64", SIXTEEN, brief=True),
)


def choose(pattern: str | None) -> tuple[Row, ...]:
    """The rows whose name matches."""
    try:
        rows = tuple(r for r in ROWS if pattern is None or re.search(pattern, r.name))
    except re.error as error:
        raise TerraceError(f"--filter {pattern}: {error}", 2) from error
    if not rows:
        names = "\n  ".join(r.name for r in ROWS)
        raise TerraceError(f"no guest matches {pattern}; there are:\n  {names}", 2)
    return rows
