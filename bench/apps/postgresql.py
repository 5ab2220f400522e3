# SPDX-License-Identifier: MIT OR Apache-2.0
"""PostgreSQL under pgbench: a server with a process per connection, on a Unix socket, in a cluster of its own.

The cluster is made once per scratch directory. PostgreSQL refuses to run as root; then everything of it runs as a user
without rights, who has to be able to reach the scratch directory and the allocators' objects. Its memory contexts take their
blocks from malloc, so the allocator sees blocks of 1 KiB and more, most of the time.
"""

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from interleave import Subject, Values, glibc
from recipe import GROUP
from said import pgbench_seconds
from server import Service, as_user, load, serving
from workload import Failed, Workload, clean_environment

SCALE = 2  # 200,000 accounts
CLIENTS = 4
SETTINGS = ("fsync=off", "listen_addresses=", "shared_buffers=32MB", "work_mem=16MB", "autovacuum=off", "max_wal_size=2GB",
            "max_parallel_workers_per_gather=0", "jit=off", "logging_collector=off")

QUERIES = """
\\set low random(1, 190000)
select count(*), sum(length(filler)), max(md5(aid::text)) from pgbench_accounts where aid between :low and :low + 3000;
select string_agg(a::text, ',' order by b desc) from (select aid as a, md5(aid::text) as b from pgbench_accounts
  where aid between :low and :low + 1500) t;
select b % 10, count(distinct md5(b::text)), jsonb_agg(jsonb_build_object('aid', b, 'text', repeat('x', b % 50))) -> 1
  from (select aid as b from pgbench_accounts where aid between :low and :low + 1000) t group by 1;
"""

BALANCES = "select (select sum(abalance) from pgbench_accounts) = (select sum(bbalance) from pgbench_branches), " \
           "(select sum(abalance) from pgbench_accounts) = (select sum(tbalance) from pgbench_tellers), " \
           "(select count(*) from pgbench_accounts)"


@dataclass(frozen=True)
class Load:
    name: str
    arguments: tuple[str, ...]
    each: int  # transactions of a client

    def transactions(self) -> int:
        return self.each * CLIENTS


LOADS = (
    Load("postgresql-tpcb", ("--builtin=tpcb-like",), 1500),
    Load("postgresql-queries", ("--no-vacuum", "--file=queries.sql"), 60),
)


def programs() -> Path | None:
    """Distributions keep the server's programs off the PATH, a folder for each version."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda p: float(p.parent.parent.name))
    elsewhere = shutil.which("postgres")
    postgres = found[-1] if found else Path(elsewhere) if elsewhere else None
    folder = postgres.resolve().parent if postgres else None
    return folder if folder and all((folder / name).exists() for name in ("initdb", "psql", "pgbench")) else None


def user() -> str | None:
    """Who is to run it: we ourselves, if we are not root; nobody is not taken before the package's own user."""
    if os.geteuid() != 0:
        return None
    known = {entry.pw_name for entry in pwd.getpwall()}
    return next((name for name in ("postgres", "nobody") if name in known), None)


def missing() -> str | None:
    if programs() is None:
        return "postgres, initdb, psql and pgbench"
    return "a user without rights to run postgres" if os.geteuid() == 0 and user() is None else None


@contextlib.contextmanager
def _socket_folder() -> Iterator[Path]:
    """A socket's path must be short, and the server must be able to make it."""
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        _give_away(folder)
        yield folder


def _give_away(folder: Path) -> None:
    name = user()
    if name is not None:
        entry = pwd.getpwnam(name)
        os.chown(folder, entry.pw_uid, entry.pw_gid)


def _client(program: str, sockets: Path, *arguments: str) -> list[str]:
    folder = programs() or Path()
    return [str(folder / program), "-h", str(sockets), "-U", "bench", *arguments, "postgres"]


def _answers(sockets: Path) -> bool:
    done = subprocess.run(_client("psql", sockets, "-Atc", "select 1"), cwd=sockets, env=clean_environment(), check=False,
                          capture_output=True, text=True, **as_user(user()))
    return done.stdout.strip() == "1"


def _service(cluster: Path, sockets: Path) -> Service:
    folder = programs() or Path()
    settings = [word for setting in SETTINGS for word in ("-c", setting)]
    command = [str(folder / "postgres"), "-D", str(cluster), "-k", str(sockets), *settings]
    return Service(command, sockets, partial(_answers, sockets), end=signal.SIGINT, user=user())


def _prepare(build: Path, scratch: Path) -> None:
    """The cluster of all workloads; it gets its name when it is complete."""
    cluster = scratch / "postgresql"
    if cluster.exists():
        return
    scratch.chmod(scratch.stat().st_mode | 0o011)  # a temporary directory is closed to others
    unfinished = scratch / "postgresql.unfinished"
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(mode=0o700)
    _give_away(unfinished)
    initdb = str((programs() or Path()) / "initdb")
    load([initdb, "-D", str(unfinished), "-U", "bench", "-A", "trust", "-E", "UTF8", "--locale=C", "-N"], cwd=unfinished, user=user())
    with _socket_folder() as sockets, serving(build, glibc(), _service(unfinished, sockets)) as server:
        load(_client("pgbench", sockets, "-i", "-q", "-s", str(SCALE)), cwd=sockets, user=user())
        server.stop()
    unfinished.rename(cluster)


def _generate(load_: Load, sockets: Path) -> float:
    (sockets / "queries.sql").write_text(QUERIES)
    settings = ("-c", str(CLIENTS), "-j", "1", "-t", str(load_.each), "--random-seed=7")
    said = load(_client("pgbench", sockets, *settings, *load_.arguments), cwd=sockets, user=user())
    return pgbench_seconds(said, load_.transactions())


def _measure(build: Path, load_: Load, subject: Subject, scratch: Path) -> Values:
    with _socket_folder() as sockets, serving(build, subject, _service(scratch / "postgresql", sockets)) as server:
        seconds = _generate(load_, sockets)
        balances = load(_client("psql", sockets, "-Atc", BALANCES), cwd=sockets, user=user()).strip()
        if balances != f"t|t|{SCALE * 100_000}":
            raise Failed(f"PostgreSQL's accounts do not balance: {balances}")
        values = server.stop()
    return values | {"seconds": seconds, "operations": float(load_.transactions())}


def workloads(build: Path) -> list[Workload]:
    return [Workload(one.name, GROUP, CLIENTS, partial(_measure, build, one), partial(_prepare, build)) for one in LOADS]
