# SPDX-License-Identifier: MIT OR Apache-2.0
"""Steps of a build: each is done once, says when it begins and how long it took, and leaves what it printed in a file."""

import hashlib
import os
import shutil
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from report import ROOT
from workload import Failed, clean_environment

HEADERS = (ROOT / "include" / "umem.h", ROOT / "include" / "sys" / "vmem.h")
LAST_LINES = 12


def say(text: str) -> None:
    print(text, flush=True)


@dataclass(frozen=True)
class Library:
    """libumem.so as it was built: programs find it by this path, so that the next build of it is theirs, too."""

    folder: Path

    @property
    def include(self) -> Path:
        return ROOT / "include"

    @property
    def identity(self) -> str:
        """Measurements belong to one build of it."""
        return hashlib.sha256((self.folder / "libumem.so").read_bytes()).hexdigest()[:16]

    def link(self) -> list[str]:
        return [f"-L{self.folder}", f"-Wl,-rpath,{self.folder}"]


def digest(files: Sequence[Path], words: Sequence[str]) -> str:
    """What a step depends on."""
    found = hashlib.sha256("\0".join(words).encode())
    for file in files:
        found.update(file.read_bytes())
    return found.hexdigest()


@dataclass(frozen=True)
class Step:
    """Commands that run in `folder`, one after the other. What one of them depends on beside its words are `files`."""

    title: str
    folder: Path
    commands: Sequence[Sequence[str]]
    files: Sequence[Path] = ()
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def _name(self) -> str:
        return "".join(c if c.isalnum() else "-" for c in self.title)

    @property
    def log(self) -> Path:
        return self.folder / f"terrace-{self._name}.log"

    def _stamp(self) -> tuple[Path, str]:
        words = [word for command in self.commands for word in command] + [f"{k}={v}" for k, v in sorted(self.environment.items())]
        return self.folder / f"terrace-{self._name}.done", digest(self.files, words)

    def do(self) -> bool:
        """False: it was done before. Failed: a command did not end with 0; the step begins again the next time."""
        stamp, wanted = self._stamp()
        if stamp.exists() and stamp.read_text() == wanted:
            return False
        self.folder.mkdir(parents=True, exist_ok=True)
        stamp.unlink(missing_ok=True)
        say(f"{self.title} ...")
        began = time.monotonic()
        with self.log.open("wb") as log:
            for command in self.commands:
                self._run(command, log.fileno())
        stamp.write_text(wanted)
        say(f"{self.title}: {time.monotonic() - began:.0f} s")
        return True

    def _run(self, command: Sequence[str], log: int) -> None:
        environment = clean_environment() | self.environment
        try:
            done = subprocess.run(
                list(command), cwd=self.folder, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, check=False
            )
        except OSError as error:
            raise Failed(f"{self.title}: {command[0]}: {error.strerror}") from None
        if done.returncode != 0:
            tail = self.log.read_text(errors="replace").splitlines()[-LAST_LINES:]
            raise Failed(f"{self.title}: {command[0]} ended with {done.returncode} ({self.log})\n" + "\n".join(tail))


def make(*words: str) -> list[str]:
    """Beside whatever else the machine does."""
    return ["nice", "-n", "8", "make", f"-j{len(os.sched_getaffinity(0))}", *words]


def need(*programs: str) -> None:
    if lacking := [name for name in programs if shutil.which(name) is None]:
        raise Failed(f"needs {' '.join(lacking)}")


def fresh(folder: Path) -> Path:
    """An empty folder."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder
