# SPDX-License-Identifier: MIT OR Apache-2.0
"""What was measured, as a file of JSON lines that only grows: a run that was stopped anywhere goes on from there.

Every run appends a header with its configuration before it measures; each measurement is on the disk before the next begins.
The `facts` of all headers of a file have to agree where they name the same thing (this library's hash, that allocator's, this
group's programs, the machine): what was measured of different things must never meet in one table. A run with other workloads
or one more allocator agrees with what is there.
"""

import fcntl
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

FORMAT = 1
WORK, LATENCY = "work", "latency"  # kinds of measurement

Values = dict[str, float]


@dataclass(frozen=True)
class Key:
    kind: str
    workload: str
    allocator: str
    round: int


@dataclass(frozen=True)
class Measurement:
    key: Key
    values: Values = field(default_factory=dict)
    failed: str = ""  # why, in one line
    took: float = 0  # seconds, with everything around it


@dataclass
class Header:
    facts: dict[str, str] = field(default_factory=dict)  # name -> what has to be the same in each run
    allocators: dict[str, dict[str, str]] = field(default_factory=dict)  # name -> version, environment; in order
    workloads: dict[str, dict[str, Any]] = field(default_factory=dict)  # key -> name, group, threads
    machine: dict[str, str] = field(default_factory=dict)
    began: str = ""

    def merge(self, later: "Header") -> None:
        self.facts |= later.facts
        self.allocators |= later.allocators
        self.workloads |= later.workloads
        self.machine |= later.machine
        self.began = self.began or later.began


class ChangedError(Exception):
    """What is to be measured is not what the file has measurements of: one line per difference."""


class InUseError(Exception):
    """Another run writes to the file."""


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    """Of a line without an end only its writer's death can be the reason: it was not measured."""
    for line in path.read_bytes().splitlines(keepends=True):
        if line.endswith(b"\n"):
            yield json.loads(line)


@dataclass
class Results:
    """What was measured, wherever it comes from."""

    header: Header = field(default_factory=Header)
    results: dict[Key, Measurement] = field(default_factory=dict)


class Store(Results):
    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self._file: int | None = None
        if path.exists():
            self._read()

    def _read(self) -> None:
        for line in _lines(self.path):
            if "header" in line:
                if line.get("format") != FORMAT:
                    raise ChangedError(f"{self.path.name} has another format than this version writes")
                self.header.merge(Header(**line["header"]))
            else:
                measurement = Measurement(Key(**line["key"]), line["values"], line["failed"], line["took"])
                self.results[measurement.key] = measurement

    def differences(self, header: Header) -> list[str]:
        before = self.header.facts
        return [f"{name} was {before[name]}, is {now}" for name, now in header.facts.items() if before.get(name, now) != now]

    def begin(self, header: Header) -> None:
        """Opens the file to append. Raises ChangedError or InUseError, and then nothing was written."""
        if found := self.differences(header):
            raise ChangedError("\n".join(found))
        self.path.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(file)
            raise InUseError(f"another run writes to {self.path.name}") from error
        self._file = file
        _drop_torn_line(file)
        self.header.merge(header)
        self._append({"format": FORMAT, "header": asdict(header)})

    def add(self, measurement: Measurement) -> None:
        self._append(asdict(measurement))
        self.results[measurement.key] = measurement

    def has(self, key: Key) -> bool:
        return key in self.results

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _append(self, line: dict[str, Any]) -> None:
        assert self._file is not None, "begin() comes first"
        os.write(self._file, json.dumps(line).encode() + b"\n")
        os.fsync(self._file)


def _drop_torn_line(file: int) -> None:
    size = os.fstat(file).st_size
    content = os.pread(file, size, 0)
    os.ftruncate(file, content.rfind(b"\n") + 1)
    os.lseek(file, 0, os.SEEK_END)
