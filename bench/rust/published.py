# SPDX-License-Identifier: MIT OR Apache-2.0
"""Programs as they are published, each with every global allocator: ripgrep searches, mini-redis on tokio serves."""

import shutil
import signal
import socket
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from crates import ALLOCATORS, BUILT, TERRACE, binary, built, is_current, unpacked, with_allocator
from interleave import Subject, Values
from recipe import find
from said import redis_seconds
from server import Service, load, serving
from workload import Failed, free_port, launched

COPIES = 40  # of ripgrep's own source, which is what it searches
SIZES = (40, 250, 1500)  # bytes of mini-redis's values, one after the other


@dataclass(frozen=True)
class Program:
    """`measure` gets a build directory with the launcher, the built program, a scratch folder, and whether little will do."""

    name: str
    version: str
    binary: str
    main: str
    measure: Callable[[Path, Path, Path, bool], Values]

    def build(self) -> None:
        folder = with_allocator(self.name, self.version, self.main)
        for allocator in ALLOCATORS:
            if allocator == TERRACE or not is_current(binary(self.binary, allocator)):
                built(folder, self.binary, allocator, "allocator/")


def _searched(copies: int) -> Path:
    folder = BUILT / f"searched-{copies}"
    if not folder.exists():
        for number in range(copies):
            shutil.copytree(unpacked("ripgrep", RIPGREP.version), folder / str(number))
    return folder


def _search(build: Path, program: Path, _scratch: Path, smoke: bool) -> Values:
    copies = 1 if smoke else COPIES
    run = launched(build, Subject(""), [str(program), "--json", "--no-ignore", r"\w{9,}", str(_searched(copies))])
    found = run.output.count('"type":"match"')
    if found == 0 or found % copies != 0:
        raise Failed(f"{program.name} finds {found} lines in {copies} copies of the same files")
    return run.values


def _answers(port: int) -> bool:
    with socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
        connection.sendall(b"*2\r\n$3\r\nget\r\n$1\r\nx\r\n")
        return connection.recv(100) == b"$-1\r\n"


def _serve(build: Path, program: Path, scratch: Path, smoke: bool) -> Values:
    """The same keys with ever larger values."""
    port, requests = free_port(), 500 if smoke else 20_000
    service = Service([str(program), "--port", str(port)], scratch, lambda: _answers(port), signal.SIGINT)
    client = [find("redis-benchmark") or "redis-benchmark", "-p", str(port), "--csv", "-t", "set,get"]
    with serving(build, Subject(""), service) as server:
        for size in SIZES:
            said = load([*client, "-n", str(requests), "-r", str(requests), "-d", str(size)], cwd=scratch)
            redis_seconds(said, 2, requests)  # refuses what is not an answer to each
        return server.stop()


RIPGREP = Program("ripgrep", "15.1.0", "rg", "crates/core/main.rs", _search)
PROGRAMS = (RIPGREP, Program("mini-redis", "0.4.1", "mini-redis-server", "src/bin/server.rs", _serve))


def measured_once(build: Path, program: Program, allocator: str, smoke: bool) -> Values:
    """Processor time and the peak of one run."""
    with tempfile.TemporaryDirectory() as scratch:
        values = program.measure(build, binary(program.binary, allocator), Path(scratch), smoke)
    return {f"{program.name}/cpu": values["cpu_seconds"], f"{program.name}/peak": values["peak_rss"]}
