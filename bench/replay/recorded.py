# SPDX-License-Identifier: MIT OR Apache-2.0
"""The programs whose traces are replayed, and what they are given to do. A scale of 1 is a few million calls of malloc."""

import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "tests" / "preload"))

from program_inputs import NODE, PERL, SQL, write_history, write_sources
from workload import free_port

# Each object by a call of malloc, which Python's own allocator would keep to itself.
PYTHON_OBJECTS = {"PYTHONMALLOC": "malloc", "PYTHONHASHSEED": "0"}

PYTHON = """
import collections, json, re
rows = [{"name": f"n{i}", "values": list(range(i % 7)), "text": "x" * (i % 50)} for i in range(60000)]
text = json.dumps(rows)
again = json.loads(text)
count = collections.Counter(re.findall(r"n[0-9]+", text))
index = {row["name"]: tuple(row["values"]) for row in again}
assert len(count) == len(index) == len(rows) and sorted(index) == sorted(count)
"""

THREADED = """
import queue, threading
queues = [queue.Queue(64) for _ in range(2)]
def produce(q):
    for i in range(60000): q.put(([str(i)] * 3, bytearray(16 + i * 7919 % 3000)))
    q.put(None)
def consume(q):
    kept = []
    while (item := q.get()) is not None:
        kept.append(item)
        if len(kept) > 200: kept = kept[100:]
threads = [threading.Thread(target=f, args=(q,)) for q in queues for f in (produce, consume)]
for t in threads: t.start()
for t in threads: t.join()
"""


def _scaled(text: str, scale: float, *numbers: int) -> str:
    """A program with these numbers in its text made that much smaller or larger."""
    for number in numbers:
        text = text.replace(str(number), str(max(1, round(number * scale))))
    return text


def _nothing(_scratch: Path, _scale: float) -> None:
    pass


@dataclass(frozen=True)
class Recorded:
    """`process` is the process whose trace is taken, of those that the command starts: the one with most calls if there are
    several. `threads` is what the name of the workload says; the trace has those that called malloc."""

    name: str
    needs: tuple[str, ...]
    process: str
    command: Callable[[Path, float], Sequence[str]]
    prepare: Callable[[Path, float], None] = _nothing
    threads: int = 1
    environment: dict[str, str] = field(default_factory=dict)

    def absent(self) -> list[str]:
        return [name for name in self.needs if shutil.which(name) is None]


def python() -> str:
    """Not a shim that starts another one."""
    return shutil.which("python3", path="/usr/bin:/usr/local/bin") or sys.executable


def _redis(_scratch: Path, scale: float) -> list[str]:
    port = free_port()
    requests = max(100, round(60_000 * scale))
    script = f"""redis-server --port {port} --bind 127.0.0.1 --save '' --appendonly no --io-threads 4 --io-threads-do-reads yes \\
          > /dev/null &
        server=$!
        for i in $(seq 200); do redis-cli -p {port} ping 2>/dev/null | grep -q PONG && break; sleep 0.05; done
        redis-benchmark -p {port} -q -n {requests} -c 20 -P 8 -r 20000 -d 100 -t set,get,lpush,lrange_100,hset,sadd > /dev/null \\
          || exit 1
        redis-cli -p {port} shutdown nosave; wait $server"""
    return ["bash", "-c", script]


RECORDED = (
    Recorded("python", ("python3",), "python3", lambda _, n: [python(), "-c", _scaled(PYTHON, n, 60000)],
             environment=PYTHON_OBJECTS),
    Recorded("python-queues", ("python3",), "python3", lambda _, n: [python(), "-c", _scaled(THREADED, n, 60000)], threads=4,
             environment=PYTHON_OBJECTS),
    Recorded("perl", ("perl",), "perl", lambda _, n: ["perl", "-e", _scaled(PERL, n, 300000, 150000, 50000)],
             environment={"PERL_HASH_SEED": "0"}),
    Recorded("sqlite3", ("sqlite3",), "sqlite3", lambda _, n: ["sqlite3", ":memory:", _scaled(SQL, n, 300000)]),
    Recorded("git", ("git",), "git",
             lambda _, __: ["git", "-C", "history.git", "-c", "pack.threads=4", "gc", "--quiet", "--aggressive"],
             lambda scratch, n: write_history(scratch, max(10, round(3000 * n))), threads=4),
    Recorded("cc1plus", ("g++",), "cc1plus",
             lambda _, __: ["g++", "-std=c++17", "-O1", "-g", "-c", "large.cpp", "-o", "large.o"],
             lambda scratch, n: write_sources(scratch, max(1, round(20 * n)))),
    Recorded("node", ("node",), "node", lambda _, n: ["node", "-e", _scaled(NODE, n, 500000, 100000, 3000)], threads=4),
    Recorded("redis", ("redis-server", "redis-benchmark", "redis-cli"), "redis-server", _redis, threads=4),
)
