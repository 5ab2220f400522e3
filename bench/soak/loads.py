# SPDX-License-Identifier: MIT OR Apache-2.0
"""The servers of the soak: how each is started, a step of its load, its spike. The same seed gives every allocator the same load.

Loads are steady in kind and size: what a server holds may rise while it fills, for the first minutes, but not afterwards.
"""

import contextlib
import os
import random
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Protocol

import postgresql
from clients import Memcached, Redis
from interleave import Subject
from recipe import find
from redis_load import before_jemalloc
from server import Service, as_user, load
from watch import BASE_LIVE, SPIKE_LIVE
from workload import Failed, clean_environment

NOISE = random.Random(1).randbytes(1 << 20)
RETRY_SECONDS = 60


def noise(randomly: random.Random, size: int) -> bytes:
    start = randomly.randrange(len(NOISE) - size)
    return NOISE[start : start + size]


def drawn_size(randomly: random.Random, largest: int) -> int:
    """Small ones often, large ones rarely: the logarithm is uniform."""
    return int(16 * (largest / 16) ** randomly.random())


class Loaded(Protocol):
    """A server under load, from its side of the socket."""

    steps_per_minute: int

    def service(self, folder: Path) -> Service: ...

    def preloaded(self, subject: Subject) -> Subject: ...

    def begin(self, folder: Path) -> None: ...

    def step(self, number: int) -> int:
        """Operations done."""
        ...

    def spike(self) -> tuple[Callable[[], None], Callable[[], None]] | None:
        """How SPIKE_LIVE bytes become live, and how BASE_LIVE or less are left; None where the server keeps them itself."""
        ...

    def end(self) -> None: ...


def _connects(kind: type[Redis] | type[Memcached], path: Path, ask: Callable[..., object]) -> bool:
    with contextlib.suppress(OSError, Failed):
        client = kind(path)
        try:
            ask(client)
            return True
        finally:
            client.close()
    return False


class RedisLoad:
    """Strings, hashes, lists and sorted sets over a fixed set of keys, with sizes that drift; every second value is read back."""

    steps_per_minute = 300
    BATCH = 100
    KEYS = 20_000

    def service(self, folder: Path) -> Service:
        socket = folder / "redis"
        settings = ("--port", "0", "--unixsocket", str(socket), "--save", "", "--appendonly", "no")
        answers = partial(_connects, Redis, socket, lambda client: client.call("ping"))
        return Service([find("redis-server") or "redis-server", *settings], folder, answers)

    def preloaded(self, subject: Subject) -> Subject:
        return before_jemalloc(subject)

    def begin(self, folder: Path) -> None:
        self._client = Redis(folder / "redis")
        self._random = random.Random(7)
        for first in range(0, self.KEYS, 500):
            self._client.calls([("set", f"s:{i}", noise(self._random, drawn_size(self._random, 8192))) for i in range(first, first + 500)])
        # Full from the start: the steps would fill them for half an hour.
        for i in range(1000):
            self._client.call("rpush", f"l:{i}", *(noise(self._random, drawn_size(self._random, 512)) for _ in range(100)))
        for i in range(500):
            self._client.call("zadd", f"z:{i}", *(word for m in range(200) for word in (self._random.randrange(10**6), f"m{m}")))

    def step(self, number: int) -> int:
        r = self._random
        # The largest size swings by a factor of 8, with a period that is no whole number of minutes.
        largest = 1024 << (number // 700 % 4)
        written: list[tuple[str, bytes]] = []
        commands: list[tuple[str | bytes | int, ...]] = []
        for _ in range(self.BATCH // 2):
            key = r.randrange(self.KEYS)
            kind = r.random()
            if kind < 0.5:
                written.append((f"s:{key}", noise(r, drawn_size(r, largest))))
                commands.append(("set", *written[-1]))
            elif kind < 0.65:
                commands.append(("hset", f"h:{key % 2000}", f"f{r.randrange(40)}", noise(r, drawn_size(r, 256))))
            elif kind < 0.8:
                commands.append(("lpush", f"l:{key % 1000}", noise(r, drawn_size(r, 512))))
                commands.append(("ltrim", f"l:{key % 1000}", 0, 99))
            elif kind < 0.9:
                commands.append(("zadd", f"z:{key % 500}", r.randrange(10**6), f"m{r.randrange(200)}"))
            else:
                commands.append(("del", f"s:{key}", f"h:{key % 2000}"))
        self._client.calls(commands)
        latest = dict(written)
        deleted = {word for command in commands if command[0] == "del" for word in command[1:]}
        checked = [key for key in latest if key not in deleted]
        for key, value in zip(checked, self._client.calls([("get", key) for key in checked]), strict=True):
            if value != latest[key]:
                raise Failed(f"redis does not give back what was set: {key}")
        return len(commands) + len(checked)

    def _used(self) -> int:
        info = self._client.call("info", "memory")
        assert isinstance(info, dict)
        return int(info["used_memory"])

    def _fill(self, name: str, until: int) -> int:
        count = 0
        while self._used() < until:
            self._client.calls([("set", f"{name}:{i}", noise(self._random, self._random.randrange(200, 8000)))
                                for i in range(count, count + 500)])
            count += 500
        return count

    def spike(self) -> tuple[Callable[[], None], Callable[[], None]]:
        self._client.call("flushall", "sync")
        self._fill("base", BASE_LIVE)
        count = 0

        def up() -> None:
            nonlocal count
            count = self._fill("spike", SPIKE_LIVE)

        def down() -> None:
            for first in range(0, count, 500):
                self._client.calls([("del", *(f"spike:{i}" for i in range(first, first + 500)))])
            if self._used() > BASE_LIVE * 1.1:
                raise Failed(f"redis still has {self._used()} bytes live")

        return up, down

    def end(self) -> None:
        self._client.close()


class MemcachedLoad:
    """Values of 16 bytes to 64 KiB, more than fit into its 64 MiB: it evicts. What it has is kept in pages of its own for ever."""

    steps_per_minute = 300
    BATCH = 60
    KEYS = 30_000

    def service(self, folder: Path) -> Service:
        socket = folder / "memcached"
        command = [find("memcached") or "memcached", "-s", str(socket), "-m", "64", "-t", "4"]
        if os.geteuid() == 0:  # it asks for a user by name then
            command += ["-u", "root"]
        answers = partial(_connects, Memcached, socket, lambda client: client.version())
        return Service(command, folder, answers)

    def preloaded(self, subject: Subject) -> Subject:
        return subject

    def begin(self, folder: Path) -> None:
        self._socket = folder / "memcached"
        self._random = random.Random(7)
        self._client = Memcached(self._socket)
        for first in range(0, self.KEYS, 100):
            self._client.set({f"k{i}": noise(self._random, drawn_size(self._random, 65536)) for i in range(first, first + 100)})

    def step(self, number: int) -> int:
        r = self._random
        if number % 50 == 0:  # its buffers belong to connections
            self._client.close()
            self._client = Memcached(self._socket)
        items = {f"k{r.randrange(self.KEYS)}": noise(r, drawn_size(r, 65536)) for _ in range(self.BATCH // 2)}
        self._client.set(items)
        for key, value in self._client.get(list(items)).items():
            if value != items[key]:
                raise Failed(f"memcached does not give back what was set: {key}")
        self._client.delete([f"k{r.randrange(self.KEYS)}" for _ in range(5)])
        return 2 * len(items) + 5

    def spike(self) -> None:
        return None

    def end(self) -> None:
        self._client.close()


class PostgresqlLoad:
    """Short transactions and queries with sorts and aggregates, over connections that come and go; the accounts balance at the end."""

    steps_per_minute = 20

    def __init__(self, cluster: Path) -> None:
        self._cluster = cluster

    def service(self, folder: Path) -> Service:
        return postgresql._service(self._cluster, folder)

    def preloaded(self, subject: Subject) -> Subject:
        return subject

    def begin(self, folder: Path) -> None:
        self._folder = folder
        (folder / "queries.sql").write_text(postgresql.QUERIES)
        self._session: subprocess.Popen[str] | None = None

    def step(self, number: int) -> int:
        kinds = (("--builtin=tpcb-like", 5), ("--file=queries.sql", 1))
        done = 0
        for arguments, each in kinds:
            settings = ("-n", "-c", "2", "-j", "1", "-t", str(each), f"--random-seed={number + 1}", arguments)
            client = postgresql._client("pgbench", self._folder, *settings)
            load(client, cwd=self._folder, user=postgresql.user(), timeout=RETRY_SECONDS * 5)
            done += 2 * each
        return done

    def _ask(self, statements: str) -> None:
        assert self._session is not None and self._session.stdin is not None and self._session.stdout is not None
        self._session.stdin.write(statements + "select 'done';\n")
        self._session.stdin.flush()
        for line in self._session.stdout:
            if line.strip() == "done":
                return
        raise Failed("psql has ended")

    def spike(self) -> tuple[Callable[[], None], Callable[[], None]]:
        """One session sorts 2,000,000 rows of 960 bytes in memory; a cursor keeps the sort until it is closed."""
        self._session = subprocess.Popen(
            postgresql._client("psql", self._folder, "-Atq"), cwd=self._folder, env=clean_environment(), stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, **as_user(postgresql.user()),
        )  # fmt: skip
        self._ask("set work_mem = '8GB';\n")
        query = "select repeat(md5(g::text), 30) as v from generate_series(1, 2000000) g order by v"
        return (
            partial(self._ask, f"begin; declare c no scroll cursor for {query}; fetch 1 from c;\n"),
            partial(self._ask, "close c; commit;\n"),
        )

    def end(self) -> None:
        if self._session is not None:
            self._session.communicate("\\q\n", timeout=RETRY_SECONDS)
        client = postgresql._client("psql", self._folder, "-Atc", postgresql.BALANCES)
        balances = load(client, cwd=self._folder, user=postgresql.user()).strip()
        if balances != f"t|t|{postgresql.SCALE * 100_000}":
            raise Failed(f"PostgreSQL's accounts do not balance: {balances}")


@contextlib.contextmanager
def made_cluster(build: Path, scratch: Path) -> Iterator[Path]:
    """A cluster for one allocator: two servers can not share one."""
    postgresql._prepare(build, scratch)
    yield scratch / "postgresql"
