# SPDX-License-Identifier: MIT OR Apache-2.0
"""memcached: the object caches of its cache.h (read buffers, connections that wait for a thread) on those of libumem."""

import contextlib
import os
import random
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from program import DEBUGGED, PLAIN, UMEM, WITH, WITHOUT, Results, Setting, Values, anonymous_bytes, libumem_in
from report import ROOT
from sources import INTEGRATION, unpacked, work_directory
from steps import HEADERS, Library, Step, fresh, make, need
from workload import Failed, answers, clean_environment, ended

sys.path.append(str(ROOT / "bench" / "suites"))

from results import by_name, of_tap

ADAPTERS = (INTEGRATION / "memcached" / "cache.h", INTEGRATION / "memcached" / "cache.c")
PROGRAMS = ("memcached", "memcached-debug", "testapp", "timedrun", "sizes")
# Of t/: those that need a disk, TLS or minutes of waiting are left out.
LEFT_OUT = re.compile(r"extstore|ssl|sasl|proxy|slabs|lru|idle|restart|watcher|chunked|evictions|issue_104|64bit|stress")
OWN_RED_ZONES = "testapp: cache_redzone"  # those of the cache.c that it comes with
SCRIPT_SECONDS = 180
WAVES, CONNECTIONS, VALUES = 30, 64, 40  # values that each connection sets, then gets
LARGEST = 16 * 1024
ANSWER_SECONDS = 120.0


@dataclass(frozen=True)
class Talk:
    """What a connection says, and what it has to hear."""

    said: bytes
    heard: bytes


def talk(seed: int, values: int = VALUES) -> Talk:
    """Sets all of its values, then gets each of them twice."""
    drawn = random.Random(seed)
    items = {f"k{seed}-{n}".encode(): drawn.randbytes(int(16 * (LARGEST / 16) ** drawn.random())) for n in range(values)}
    sets = b"".join(b"set %s 0 0 %d\r\n%s\r\n" % (key, len(value), value) for key, value in items.items())
    gets = b"".join(b"get %s\r\n" % key for key in items) * 2
    answers = b"".join(b"VALUE %s 0 %d\r\n%s\r\nEND\r\n" % (key, len(value), value) for key, value in items.items())
    return Talk(sets + gets, b"STORED\r\n" * values + answers * 2)


def received(connection: socket.socket, size: int) -> bytes:
    """So many bytes, or fewer if the server ends the connection."""
    parts = bytearray()
    while len(parts) < size and (more := connection.recv(min(1 << 20, size - len(parts)))):
        parts += more
    return bytes(parts)


def wave(address: str, talks: list[Talk]) -> None:
    """All of them at once, each over a connection of its own."""
    with contextlib.ExitStack() as stack:
        connections = [stack.enter_context(socket.socket(socket.AF_UNIX)) for _ in talks]
        for connection in connections:
            connection.settimeout(ANSWER_SECONDS)
            connection.connect(address)
        for connection, one in zip(connections, talks, strict=True):
            connection.sendall(one.said)
        for connection, one in zip(connections, talks, strict=True):
            if received(connection, len(one.heard)) != one.heard:
                raise Failed("memcached gives wrong answers")


class Memcached:
    name = "memcached"
    gib = 0.1
    minutes = 15
    counts = "sets and gets"
    settings = (WITHOUT, WITH, DEBUGGED)

    def needs(self) -> tuple[str, ...]:
        return ("gcc", "make", "perl")

    def _folder(self, build: str) -> Path:
        return work_directory() / f"memcached-{build}"

    def _source(self, build: str) -> Path:
        """A tree for each: its tests look for programs beside them."""
        folder = self._folder(build)
        if not folder.is_dir():
            scratch = fresh(folder.with_name(f"{folder.name}.copying"))
            shutil.copytree(unpacked("memcached"), scratch, symlinks=True, dirs_exist_ok=True)
            scratch.rename(folder)
        return folder

    def build(self, library: Library) -> None:
        need(*self.needs())
        if not Path("/usr/include/event.h").exists():
            raise Failed("needs libevent-dev")
        for build in (PLAIN, UMEM):
            folder = self._source(build)
            words: list[str] = []
            if build == UMEM:
                for adapter in ADAPTERS:
                    shutil.copy2(adapter, folder)
                words = [f"CPPFLAGS=-I{library.include}", f"LDFLAGS={' '.join(library.link())}", "LIBS=-lumem"]
            Step(f"memcached, {build}: configure", folder, [["nice", "-n", "8", "./configure", *words]]).do()
            files = (*ADAPTERS, *HEADERS) if build == UMEM else ()
            Step(f"memcached, {build}: make", folder, [make("clean"), make(*PROGRAMS)], files).do()

    def check(self, library: Library, setting: Setting) -> Results:
        scripts = sorted(p.name for p in (self._folder(setting.build) / "t").glob("*.t") if not LEFT_OUT.search(p.name))
        return self._run(setting, ["testapp", *scripts])

    def check_again(self, library: Library, setting: Setting, tests: Sequence[str]) -> Results:
        return self._run(setting, sorted({test.partition(":")[0] for test in tests}))

    def _run(self, setting: Setting, programs: Sequence[str]) -> Results:
        folder = self._folder(setting.build)
        found: dict[str, str] = {}
        for name in programs:
            command = ["./testapp"] if name == "testapp" else ["perl", "-I", "t/lib", f"t/{name}"]
            done = subprocess.run(
                ["timeout", str(SCRIPT_SECONDS), *command], cwd=folder, env=clean_environment() | setting.environment,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False,
            )  # fmt: skip
            results = by_name(of_tap(done.stdout)) or {"runs": "skipped" if "1..0" in done.stdout else "failed"}
            found |= {f"{name}: {test}": result for test, result in results.items()}
        found.pop(OWN_RED_ZONES, None)
        return found

    def measure(self, library: Library, setting: Setting) -> Values:
        with tempfile.TemporaryDirectory() as name:
            address = str(Path(name) / "socket")
            command = [str(self._folder(setting.build) / "memcached"), "-s", address, "-U", "0", "-m", "256", "-t", "2", "-c", "1024"]
            command += ["-u", "root"] if os.geteuid() == 0 else []
            environment = clean_environment() | setting.environment
            with ended(subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)) as server:
                return self._loaded(server, address, setting)

    def _loaded(self, server: subprocess.Popen[bytes], address: str, setting: Setting) -> Values:
        if not answers(server, lambda: connected(address)):
            raise Failed("memcached does not answer")
        if setting.build == UMEM and not libumem_in(server.pid):
            raise Failed("memcached runs without libumem")
        talks = [talk(number) for number in range(CONNECTIONS)]
        began = time.monotonic()
        for _ in range(WAVES):
            wave(address, talks)
        seconds = time.monotonic() - began
        if server.poll() is not None:
            raise Failed(f"memcached ended with {server.returncode}")
        return {"rate": WAVES * CONNECTIONS * VALUES * 3 / seconds, "rss": anonymous_bytes(server.pid)}


def connected(address: str) -> bool:
    with socket.socket(socket.AF_UNIX) as one:
        one.connect(address)
    return True
