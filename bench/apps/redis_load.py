# SPDX-License-Identifier: MIT OR Apache-2.0
"""redis under redis-benchmark: the time of the load's requests, and of the server its memory, cpu time and faults.

Debian's redis-server is linked with libjemalloc. A preloaded object comes before it and serves malloc, but without one jemalloc
would be measured as glibc, and a function that an allocator lacks would be jemalloc's on another's blocks. So libc itself is
preloaded, too, last: what is not the allocator's is glibc's, as in other programs.
"""

import subprocess
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from interleave import Subject, Values
from recipe import GROUP, find, with_more
from said import redis_seconds
from server import Service, load, serving
from workload import Failed, Workload, clean_environment

NEEDS = ("redis-server", "redis-benchmark", "redis-cli")
LIBC = "libc.so.6"
SOCKET = "redis"
FIXED = 500  # keys with known values, to see whether the server still answers right


@dataclass(frozen=True)
class Load:
    """Calls of redis-benchmark, one after another; each is arguments and the number of tests that it consists of."""

    name: str
    requests: int
    calls: tuple[tuple[tuple[str, ...], int], ...]

    def operations(self) -> int:
        return self.requests * sum(tests for _, tests in self.calls)


LOADS = (
    Load("redis-requests", 60_000, ((("-r", "20000", "-d", "100", "-P", "8", "-t", "set,get,lpush,hset,sadd,zadd"), 6),)),
    # The same keys with ever larger values: each is freed and a larger one made, and what is free does not fit.
    Load("redis-growing", 80_000,
         tuple((("-r", "40000", "-d", str(d), "-P", "16", "-t", "set"), 1) for d in (40, 100, 250, 600, 1500))),
    Load("redis-lists", 15_000, ((("-r", "1000", "-d", "50", "-P", "4", "-t", "lpush,lrange_100,lrange_300"), 4),)),
)


def before_jemalloc(subject: Subject) -> Subject:
    ahead = [entry for entry in subject.environment.get("LD_PRELOAD", "").split(":") if entry]
    return with_more(subject, {"LD_PRELOAD": ":".join([*ahead, LIBC])})


def _cli(socket: Path, *words: str) -> list[str]:
    return [find("redis-cli") or "redis-cli", "-s", str(socket), *words]


def _answers(socket: Path) -> bool:
    done = subprocess.run(_cli(socket, "ping"), env=clean_environment(), capture_output=True, text=True, check=False)
    return done.stdout.strip() == "PONG"


def _write_and_read(socket: Path, folder: Path) -> None:
    load(_cli(socket), cwd=folder, given="".join(f"set fixed:{i} {'v' * (i % 97)}{i}\n" for i in range(FIXED)))
    said = load(_cli(socket), cwd=folder, given="".join(f"get fixed:{i}\n" for i in range(FIXED)))
    if said.split() != [f"{'v' * (i % 97)}{i}" for i in range(FIXED)]:
        raise Failed("redis does not give back what was set")


def _generate(load_: Load, socket: Path, folder: Path) -> float:
    seconds = 0.0
    for arguments, tests in load_.calls:
        command = [find("redis-benchmark") or "redis-benchmark", "-s", str(socket), "--csv", "-c", "20", "-n", str(load_.requests)]
        seconds += redis_seconds(load([*command, *arguments], cwd=folder), tests, load_.requests)
    return seconds


def _measure(build: Path, load_: Load, subject: Subject, _scratch: Path) -> Values:
    with tempfile.TemporaryDirectory() as directory:  # a socket's path must be short
        folder = Path(directory)
        socket = folder / SOCKET
        settings = ("--port", "0", "--unixsocket", str(socket), "--save", "", "--appendonly", "no")
        service = Service([find("redis-server") or "redis-server", *settings], folder, partial(_answers, socket))
        with serving(build, before_jemalloc(subject), service) as server:
            seconds = _generate(load_, socket, folder)
            _write_and_read(socket, folder)
            load(_cli(socket, "flushall", "sync"), cwd=folder)
            settled = server.settled_rss()
            values = server.stop()
    return values | settled | {"seconds": seconds, "operations": float(load_.operations())}


def workloads(build: Path) -> list[Workload]:
    return [Workload(one.name, GROUP, 1, partial(_measure, build, one)) for one in LOADS]
