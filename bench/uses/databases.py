# SPDX-License-Identifier: MIT OR Apache-2.0
"""Databases: MariaDB with a thread for each of many connections, PostgreSQL with a process for each, redis with holes."""

import shutil
import signal
import subprocess
from functools import partial
from pathlib import Path

import postgresql
from recipe import find
from redis_load import before_jemalloc
from server import Service, as_user, load
from use import Done, Use, number
from workload import Failed, answers, clean_environment, ran

CONNECTIONS = 200
HELD = 60  # connections of PostgreSQL's
LOAD_SECONDS = 300


# ---- MariaDB

def _mariadb(folder: Path) -> Service:
    data, socket = folder / "data", folder / "socket"
    settings = (f"--datadir={data}", f"--socket={socket}", f"--pid-file={folder}/pid", "--skip-networking", "--skip-grant-tables",
                "--innodb-buffer-pool-size=64M", "--innodb-flush-log-at-trx-commit=0", "--skip-log-bin", f"--max-connections={2 * CONNECTIONS}",
                f"--thread-cache-size={CONNECTIONS}", f"--table-open-cache={8 * CONNECTIONS}", "--innodb-use-native-aio=0")
    return Service(["/usr/sbin/mariadbd", "--no-defaults", "--user=root", *settings], folder, partial(_mariadb_answers, socket))


def _mariadb_answers(socket: Path) -> bool:
    command = ["mariadb-admin", "--no-defaults", "-u", "root", "-S", str(socket), "ping"]
    return subprocess.run(command, env=clean_environment(), capture_output=True, check=False).returncode == 0


def _install_mariadb(folder: Path) -> None:
    folder.chmod(0o755)
    ran(["mariadb-install-db", "--no-defaults", f"--datadir={folder}/data", "--user=root", "--skip-test-db",
         "--auth-root-authentication-method=normal"])


def _sysbench(folder: Path, *words: str) -> str:
    where = ("--db-driver=mysql", f"--mysql-socket={folder}/socket", "--mysql-user=root", "--mysql-db=bench", "--tables=8", "--table-size=5000")
    return load([find("sysbench") or "sysbench", "oltp_read_write", *where, *words], cwd=folder)


def _load_mariadb(folder: Path, share: float) -> Done:
    events = max(CONNECTIONS, round(9000 * share))
    ran(["mariadb", "--no-defaults", "-u", "root", "-S", f"{folder}/socket", "-e", "create database bench"])
    _sysbench(folder, "prepare")
    said = _sysbench(folder, f"--threads={CONNECTIONS}", f"--events={events}", "--time=0", "--rand-seed=1", "--percentile=99", "run")
    if number(r"total number of events: +(\d+)", said) != events:
        raise Failed(f"sysbench did not do {events} transactions: {said.strip()[-200:]}")
    return Done(events, number(r"99th percentile: +(.+)", said))


# ---- PostgreSQL

# A client's last transaction waits, so that its process is there during the drain as it would be in a pool of connections.
# Those without a statement before it fill pgbench's buffer of the log, 4 KiB, so that all that have statements are in the file.
EMPTY = 200
SCRIPT = f"""
\\set done :done + 1
\\if :done <= :wanted
{postgresql.QUERIES}
\\elif :done > :wanted + {EMPTY}
select pg_sleep(1000);
\\endif
"""
ASLEEP = "select count(*) from pg_stat_activity where wait_event = 'PgSleep'"


def _program(name: str) -> str:
    return str((postgresql.programs() or Path()) / name)


def _client(folder: Path, name: str, *words: str) -> list[str]:
    return [_program(name), "-h", str(folder), "-U", "bench", *words, "postgres"]


def _postgresql_answers(folder: Path, query: str = "select 1", wanted: int = 1) -> bool:
    done = subprocess.run(_client(folder, "psql", "-Atc", query), cwd=folder, env=clean_environment(), check=False, capture_output=True,
                          text=True, **as_user(postgresql.user()))
    return done.stdout.strip() == str(wanted)


def _postgresql(folder: Path) -> Service:
    settings = [word for setting in (*postgresql.SETTINGS, f"max_connections={HELD + 10}") for word in ("-c", setting)]
    command = [_program("postgres"), "-D", str(folder / "cluster"), "-k", str(folder), *settings]
    return Service(command, folder, partial(_postgresql_answers, folder), signal.SIGINT, postgresql.user())


def _make_cluster(folder: Path) -> None:
    name = postgresql.user()
    if name is not None:
        shutil.chown(folder, name, name)
    load([_program("initdb"), "-D", str(folder / "cluster"), "-U", "bench", "-A", "trust", "-E", "UTF8", "--locale=C", "-N"], cwd=folder,
         user=name)


def _p99(folder: Path, each: int) -> float:
    """Of the transactions that have statements: a line of the log has client, number from 1 on, microseconds, and three words more."""
    lines = [line.split() for log in folder.glob("pgbench.*") for line in log.read_text().splitlines()]
    found = sorted(int(line[2]) for line in lines if len(line) == 6 and int(line[1]) <= each)
    if len(found) != each * HELD:
        raise Failed(f"pgbench has logged {len(found)} transactions of {each * HELD}")
    return found[len(found) * 99 // 100] / 1000


def _load_postgresql(folder: Path, share: float) -> Done:
    each = max(1, round(12 * share))
    name = postgresql.user()
    load(_client(folder, "pgbench", "-i", "-q", "-s", str(postgresql.SCALE)), cwd=folder, user=name)
    (folder / "script.sql").write_text(SCRIPT)
    clients = ("-n", "-c", str(HELD), "-j", "1", "-t", str(each + EMPTY + 1), "--random-seed=7", "-D", "done=0", "-D", f"wanted={each}",
               "-f", "script.sql", "--log", "--log-prefix=pgbench")
    running = subprocess.Popen(  # it ends with the server
        _client(folder, "pgbench", *clients), cwd=folder, env=clean_environment(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, **as_user(name))
    if not answers(running, partial(_postgresql_answers, folder, ASLEEP, HELD), LOAD_SECONDS):
        running.kill()
        raise Failed("pgbench did not come to its end")
    return Done(each * HELD, _p99(folder, each))


# ---- redis

KEYS = 240_000
# Three generations of values of which one key in ten stays, each larger than the one before: what was freed does not fit.
HOLES = """
local base = tonumber(ARGV[1])
for i = base, base + 999 do redis.call('set', 'g' .. ARGV[2] .. ':' .. i, string.rep('x', tonumber(ARGV[3]) + (i * 7919) % tonumber(ARGV[3]))) end
return 1000
"""
DROP = """
for i = tonumber(ARGV[1]), tonumber(ARGV[1]) + 999 do if i % 10 ~= 0 then redis.call('del', 'g' .. ARGV[2] .. ':' .. i) end end
return 1000
"""


def _cli(folder: Path, *words: str) -> list[str]:
    return [find("redis-cli") or "redis-cli", "-s", str(folder / "redis"), *words]


def _redis_answers(folder: Path) -> bool:
    done = subprocess.run(_cli(folder, "ping"), env=clean_environment(), capture_output=True, text=True, check=False)
    return done.stdout.strip() == "PONG"


def _redis(folder: Path) -> Service:
    settings = ("--port", "0", "--unixsocket", str(folder / "redis"), "--save", "", "--appendonly", "no")
    return Service([find("redis-server") or "redis-server", *settings], folder, partial(_redis_answers, folder))


def _load_redis(folder: Path, share: float) -> Done:
    keys = max(1, round(KEYS * share / 1000)) * 1000
    for generation, size in enumerate((60, 130, 300)):
        for script in (HOLES, DROP):
            (folder / "script").write_text(script)
            sha = load(_cli(folder, "-x", "script", "load"), cwd=folder, given=script).strip()
            calls = "".join(f"evalsha {sha} 0 {base} {generation} {size}\n" for base in range(0, keys, 1000))
            said = load(_cli(folder), cwd=folder, given=calls)
            if said.split().count("1000") != keys // 1000:
                raise Failed(f"redis does not do what it is told: {said.strip()[-200:]}")
    said = load(_cli(folder, "info", "latencystats"), cwd=folder)
    return Done(6 * keys, number(r"_evalsha:.*\bp99=([\d.]+)", said) / 1000)


USES = (
    Use("mariadb", f"MariaDB, {CONNECTIONS} connections", ("/usr/sbin/mariadbd", "sysbench", "mariadb-install-db"), _mariadb, _load_mariadb,
        _install_mariadb),
    Use("postgresql", f"PostgreSQL, {HELD} connections", (_program("postgres"),), _postgresql, _load_postgresql, _make_cluster),
    Use("redis", "redis, values that grow", ("redis-server", "redis-cli"), _redis, _load_redis, subject=before_jemalloc),
)
