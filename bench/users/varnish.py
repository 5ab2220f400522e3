# SPDX-License-Identifier: MIT OR Apache-2.0
"""Varnish: its storage "umem" beside its storage "malloc", behind wrk and before a web server of our own."""

import contextlib
import os
import random
import re
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Sequence
from pathlib import Path

import psutil
from origin import body_of
from program import DEBUGGED, PLAIN, UMEM, WITH, WITHOUT, Results, Setting, Values, anonymous_bytes, libumem_in
from sources import unpacked, work_directory
from steps import HEADERS, Library, Step, make, need
from workload import Failed, answers, clean_environment, ended, free_port

HERE = Path(__file__).resolve().parent
PARTS = ("include", "lib", "bin", "vmod")
TESTS = "s*.vtc b*.vtc c*.vtc"  # storage, basic functions, complex ones
STORAGE_MIB = 96  # less than the texts take, so that it evicts
TEXTS, CONNECTIONS, SECONDS = 20_000, 32, 15
COMPARED = 300
WAITING = 4  # tests at once for each CPU: most of their time they wait


def of_varnishtest(output: str) -> dict[str, str]:
    """"#    top  TEST tests/s00001.vtc passed (1.2)"; also FAILED, TIMED OUT, skipped."""
    found = re.findall(r"TEST \S*?([\w.-]+\.vtc) (passed|skipped|FAILED|TIMED OUT)", output)
    return {name: how if how in ("passed", "skipped") else "failed" for name, how in found}


def counters_of(output: str) -> dict[str, int]:
    """varnishstat -1: "SMU.s0.c_req   339037   17844.05 Allocator requests"."""
    return {name: int(value) for name, value in re.findall(r"^(\S+)\s+(\d+)\s", output, re.M)}


def rate_of(output: str) -> float:
    """wrk's."""
    if found := re.search(r"^\s*(Non-2xx or 3xx responses|Socket errors): .*$", output, re.M):
        raise Failed(f"wrk: {found[0].strip()}")
    if not (found := re.search(r"^Requests/sec:\s+([\d.]+)", output, re.M)):
        raise Failed(f"wrk says no rate: {output.strip()[-200:]}")
    return float(found[1])


def refuse_idle(counters: dict[str, int]) -> None:
    """The load has to go through the storage of libumem: allocated, freed, in use."""
    for name in ("c_req", "c_freed", "g_bytes"):
        if counters.get(f"SMU.s0.{name}", 0) == 0:
            raise Failed(f"varnishd's storage umem has not been used: {name} is 0")


class Varnish:
    name = "varnish"
    gib = 0.4
    minutes = 25
    counts = "requests"
    settings = (WITHOUT, WITH, DEBUGGED)

    def needs(self) -> tuple[str, ...]:
        return ("gcc", "make", "autoreconf", "libtoolize", "pkg-config", "wrk")

    def _folder(self, build: str) -> Path:
        return work_directory() / f"varnish-{build}"

    def _program(self, build: str, name: str) -> str:
        return str(self._folder(build) / "bin" / name / name)

    def build(self, library: Library) -> None:
        need(*self.needs())
        source = unpacked("varnish")
        Step("autogen", source, [["nice", "-n", "8", "sh", "./autogen.sh"]]).do()
        # Its configure looks for umem.h on Solaris alone.
        flags = {PLAIN: [], UMEM: [f"CPPFLAGS=-DHAVE_UMEM_H=1 -I{library.include}"]}
        for build in (PLAIN, UMEM):
            folder = self._folder(build)
            options = ["--with-sphinx-build=true", "--with-rst2man=true", "--with-unwind=no", "--with-jemalloc=no", *flags[build]]
            configure = ["nice", "-n", "8", str(source / "configure"), f"--prefix={folder / 'root'}", *options]
            Step(f"varnish, {build}: configure", folder, [configure]).do()
            files = HEADERS if build == UMEM else ()
            clean = make("clean") if build == UMEM else ["true"]
            Step(f"varnish, {build}: make", folder, [clean, *(make("-C", part) for part in PARTS)], files).do()

    def _environment(self, library: Library, setting: Setting) -> dict[str, str]:
        """It finds libumem.so by dlopen."""
        found = {"LD_LIBRARY_PATH": str(library.folder)} if setting.build == UMEM else {}
        return clean_environment() | found | setting.environment

    def check(self, library: Library, setting: Setting) -> Results:
        """Where there is umem.h the storage that no test names is umem, too. -i finds programs from the folder it runs in."""
        folder = unpacked("varnish") / "bin" / "varnishtest" / "tests"
        tests = sorted(p for pattern in TESTS.split() for p in folder.glob(pattern))
        return self._run(library, setting, tests, WAITING * len(os.sched_getaffinity(0)))

    def check_again(self, library: Library, setting: Setting, tests: Sequence[str]) -> Results:
        folder = unpacked("varnish") / "bin" / "varnishtest" / "tests"
        return self._run(library, setting, [folder / name for name in tests], 1)

    def _run(self, library: Library, setting: Setting, tests: Sequence[Path], at_once: int) -> Results:
        command = [self._program(setting.build, "varnishtest"), "-i", "-k", f"-j{at_once}", "-t", "180"]
        with tempfile.TemporaryDirectory() as scratch:
            done = subprocess.run(
                [*command, *map(str, tests)], cwd=self._folder(setting.build), env=self._environment(library, setting) | {"TMPDIR": scratch},
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False,
            )  # fmt: skip
        if not (found := of_varnishtest(done.stdout)):
            raise Failed(f"varnishtest: {done.stdout.strip()[-300:]}")
        return {test.name: found.get(test.name, "failed") for test in tests}

    def measure(self, library: Library, setting: Setting) -> Values:
        words = [sys.executable, str(HERE / "origin.py")]
        with ended(subprocess.Popen(words, stdout=subprocess.PIPE, text=True)) as origin:
            assert origin.stdout is not None
            with tempfile.TemporaryDirectory() as name:
                return self._loaded(library, setting, Path(name), int(origin.stdout.readline()))

    def _loaded(self, library: Library, setting: Setting, folder: Path, origin: int) -> Values:
        kind = "umem" if setting.build == UMEM else "malloc"
        port = free_port()
        command = [self._program(setting.build, "varnishd"), "-F", "-j", "none", "-n", str(folder / "work")]
        command += ["-a", f"127.0.0.1:{port}", "-b", f"127.0.0.1:{origin}", "-s", f"s0={kind},{STORAGE_MIB}m"]
        with (folder / "log").open("w") as log:
            server = subprocess.Popen(
                command, env=self._environment(library, setting), stdin=subprocess.DEVNULL, stdout=log, stderr=log, text=True
            )
        with ended(server):
            if not answers(server, lambda: fetched(f"http://127.0.0.1:{port}/1")):
                raise Failed(f"varnishd does not answer: {(folder / 'log').read_text()[-300:]}")
            script = ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{SECONDS}s", "-s", str(HERE / "requests.lua")]
            environment = clean_environment() | {"COUNT": str(TEXTS)}
            address = f"http://127.0.0.1:{port}/"
            done = subprocess.run([*script, address], env=environment, capture_output=True, text=True, check=False)
            values = {"rate": rate_of(done.stdout + done.stderr), "rss": anonymous_bytes(child := child_of(server.pid))}
            compare_texts(address)
            if setting.build == UMEM:
                if not libumem_in(child):
                    raise Failed("varnishd runs without libumem")
                statistics = [self._program(setting.build, "varnishstat"), "-1", "-n", str(folder / "work")]
                refuse_idle(counters_of(subprocess.run(statistics, capture_output=True, text=True, check=True).stdout))
            if child_of(server.pid) != child:
                raise Failed("varnishd's child has ended and begun again")
        if server.returncode != 0:
            raise Failed(f"varnishd ended with {server.returncode}: {(folder / 'log').read_text()[-300:]}")
        return values


def child_of(pid: int) -> int:
    """The process that serves; varnishd's other one looks after it."""
    with contextlib.suppress(psutil.NoSuchProcess, IndexError):
        return psutil.Process(pid).children()[0].pid
    raise Failed("varnishd has no child")


def fetched(address: str) -> bytes:
    with urllib.request.urlopen(address, timeout=30) as answer:
        return bytes(answer.read())


def compare_texts(address: str) -> None:
    """Some of the texts, from the storage or not, have to be as they were."""
    drawn = random.Random(7)
    for number in (drawn.randint(1, TEXTS) for _ in range(COMPARED)):
        if fetched(f"{address}{number}") != body_of(number):
            raise Failed(f"/{number} is not what the origin has")
