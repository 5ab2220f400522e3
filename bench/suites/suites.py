# SPDX-License-Identifier: MIT OR Apache-2.0
"""Test suites of other projects, each test with Terrace preloaded and without: the results must be the same.

    ./terrace bench suites python redis

Everything of a suite runs under the allocator: the programs under test, the shells, perl, tcl and compilers around them. The
sources come from the distribution (apt-get source) where the installed package has no suite; its programs are the installed ones.
"""

import argparse
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from report import ROOT
from results import Comparison, Results, by_name, compare, of_junit, of_pg_regress, of_redis, of_sqlite, of_tap
from workload import clean_environment

PYTHON_TESTS = (
    "test_json test_threading test_thread test_subprocess test_ctypes test_multiprocessing_fork test_multiprocessing_spawn "
    "test_multiprocessing_forkserver test_concurrent_futures test_asyncio test_fork1 test_signal test_mmap test_gc test_re "
    "test_pickle test_sqlite3 test_zlib test_bytes test_dict test_decimal test_ssl"
).split()
REDIS_UNITS = (
    "unit/type/string unit/type/incr unit/type/list unit/type/list-2 unit/type/list-3 unit/type/hash unit/type/set unit/type/zset "
    "unit/type/stream unit/type/stream-cgroups unit/keyspace unit/scan unit/expire unit/other unit/sort unit/multi unit/quit "
    "unit/protocol unit/pubsub unit/scripting unit/functions unit/bitops unit/bitfield unit/geo unit/hyperloglog unit/dump unit/auth "
    "unit/acl unit/lazyfree unit/tracking unit/querybuf unit/networking unit/maxmemory unit/memefficiency"
).split()
# Families of sqlite's scripts; those of threads and of faults in each call wait or repeat for minutes.
SQLITE_TESTS = (
    "select insert update delete index join trans vacuum where window json fts3a memdb pcache savepoint trigger view expr func in subquery "
    "with types schema attach autovacuum blob cursor date malloc5 malloc7 shared4 wal2 sort2"
).split()
GIT_TESTS = "t00[0-2][0-9]-*.sh t100[0-9]-*.sh t530[0-9]-*.sh"


class Unavailable(Exception):
    """The suite can not be run here: one line on why."""


@dataclass(frozen=True)
class Suite:
    """`prepare` makes the folder to run in; `run` gives the results, under the environment that it is told."""

    name: str
    prepare: Callable[[Path], Path]
    run: Callable[[Path, dict[str, str]], Results]
    after: str = ""  # preloaded behind the allocator: glibc itself where the program is linked with another allocator


def said(command: Sequence[str], folder: Path, environment: dict[str, str], hours: float = 2, user: str | None = None) -> str:
    """What the command prints; a suite's exit status says no more than its results."""
    done = subprocess.run(
        list(command), cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, errors="replace", timeout=hours * 3600, check=False, user=user, group=user, extra_groups=None if user is None else [],
    )  # fmt: skip
    return done.stdout


def need(*programs: str) -> None:
    if lacking := [name for name in programs if shutil.which(name) is None]:
        raise Unavailable(f"needs {' '.join(lacking)}")


def source_of(package: str) -> str:
    """What apt-get source is asked for: of the version that is installed, whose programs are under test."""
    query = ["dpkg-query", "--show", "--showformat=${source:Version}", package]
    version = subprocess.run(query, capture_output=True, text=True, check=False).stdout
    return f"{package}={version}" if version else package


def unpacked(scratch: Path, package: str) -> Path:
    """The distribution's sources of the package, without its patches: a copy in `scratch` if it is there, else fetched."""
    folder = scratch / package
    if folder.is_dir():
        return folder
    need("apt-get", "dpkg-query")
    command = ["apt-get", "source", "--download-only", source_of(package)]
    done = subprocess.run(command, cwd=scratch, capture_output=True, text=True, check=False)
    archives = sorted(scratch.glob(f"{package}_*.orig.tar.*[a-z2]"))
    if done.returncode != 0 or not archives:
        raise Unavailable(f"apt-get source {package} failed; are there deb-src lines? {done.stderr.strip()[-200:]}")
    folder.mkdir()
    subprocess.run(["tar", "-x", "-C", str(folder), "--strip-components=1", "-f", str(archives[-1])], check=True)
    return folder


def link(folder: Path, name: str, program: str) -> None:
    """The installed program where the suite looks for the one that was built."""
    found = shutil.which(program)
    if found is None:
        raise Unavailable(f"needs {program}")
    place = folder / name
    if not place.exists():
        place.symlink_to(found)


# ---- the suites


def _prepare_python(scratch: Path) -> Path:
    if not Path("/usr/bin/python3").exists() or not list(Path("/usr/lib").glob("python3.*/test/test_json")):
        raise Unavailable("needs libpython3-testsuite")
    folder = scratch / "python"
    folder.mkdir(exist_ok=True)
    return folder


def _run_python(folder: Path, environment: dict[str, str]) -> Results:
    results: Results = {}
    for name in PYTHON_TESTS:
        junit = folder / f"{name}.xml"
        junit.unlink(missing_ok=True)
        output = said(["/usr/bin/python3", "-m", "test", "--timeout", "900", "--junit-xml", str(junit), name], folder, environment)
        if junit.exists():
            results |= {f"{name}: {test}": result for test, result in of_junit(junit.read_text()).items()}
        else:
            results[name] = "skipped" if "skipped" in output else "failed"
    return results


def _prepare_redis(scratch: Path) -> Path:
    need("tclsh", "redis-server", "redis-cli", "redis-benchmark")
    folder = unpacked(scratch, "redis")
    for name in ("redis-server", "redis-cli", "redis-benchmark", "redis-check-aof", "redis-check-rdb"):
        link(folder / "src", name, name)
    return folder


def _run_redis(folder: Path, environment: dict[str, str]) -> Results:
    units = [word for unit in REDIS_UNITS for word in ("--single", unit)]
    return of_redis(said(["./runtest", "--clients", "1", "--tags", "-needs:debug -slow", "--dont-clean", *units], folder, environment))


def _prepare_memcached(scratch: Path) -> Path:
    need("perl", "cc", "memcached")
    folder = unpacked(scratch, "memcached")
    # The suite asks for an option that only builds with a sandbox have.
    program = folder / "memcached-debug"
    program.write_text('#!/bin/sh\nset -- $(echo " $* " | sed "s/ -o relaxed_privileges / /")\nexec memcached "$@"\n')
    program.chmod(0o755)
    if not (folder / "timedrun").exists():
        subprocess.run(["cc", "-O1", "-w", "-o", "timedrun", "timedrun.c"], cwd=folder, check=True)
    return folder


def _run_memcached(folder: Path, environment: dict[str, str]) -> Results:
    results: Results = {}
    for script in sorted((folder / "t").glob("*.t")):
        output = said(["timeout", "900", "perl", "-I", "t/lib", f"t/{script.name}"], folder, environment)
        found = by_name(of_tap(output)) or {"runs": "skipped" if "1..0" in output else "failed"}
        results |= {f"{script.name}: {test}": result for test, result in found.items()}
    return results


def _prepare_git(scratch: Path) -> Path:
    need("git", "make", "cc")
    folder = unpacked(scratch, "git")
    if not (folder / "t" / "helper" / "test-tool").exists():
        options = ("NO_CURL=1", "NO_EXPAT=1", "NO_GETTEXT=1", "NO_TCLTK=1")
        done = subprocess.run(["make", f"-j{os.cpu_count()}", *options, "all"], cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Unavailable(f"git could not be built: {done.stderr.strip()[-200:]}")
    return folder / "t"


def _run_git(folder: Path, environment: dict[str, str]) -> Results:
    results: Results = {}
    for script in sorted(path for pattern in GIT_TESTS.split() for path in folder.glob(pattern)):
        output = said(["timeout", "900", "sh", f"./{script.name}", "--root=/tmp/terrace-git-t"], folder, environment)
        results |= {f"{script.stem}: {test}": result for test, result in of_tap(output).items()}
    return results


def _asked(*command: str, folder: Path | None = None) -> str:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout.strip()


def _prepare_postgresql(scratch: Path) -> Path:
    """Functions in C that the suite loads are compiled for the installed server."""
    need("cc", "pg_config")
    folder = unpacked(scratch, "postgresql-15") / "src" / "test" / "regress"
    headers = _asked("pg_config", "--includedir-server")
    if not Path(headers, "postgres.h").exists():
        raise Unavailable("needs postgresql-server-dev-15")
    _asked("cc", "-O1", "-w", "-shared", "-fPIC", f"-I{headers}", "-o", "regress.so", "regress.c", folder=folder)
    return folder


def _run_postgresql(folder: Path, environment: dict[str, str]) -> Results:
    """A server of its own is made, started, tested and stopped, all under the allocator; it refuses to be root's."""
    pg_regress = Path(_asked("pg_config", "--pgxs")).parents[2] / "src" / "test" / "regress" / "pg_regress"
    user = "postgres" if os.geteuid() == 0 else None
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        if user:
            shutil.chown(scratch, user, user)
        settings = {"inputdir": folder, "dlpath": folder, "bindir": _asked("pg_config", "--bindir"), "outputdir": scratch,
                    "temp-instance": scratch / "instance", "encoding": "UTF8", "schedule": folder / "parallel_schedule"}
        words = [f"--{name}={value}" for name, value in settings.items()]
        return of_pg_regress(said([str(pg_regress), "--no-locale", *words], scratch, environment, user=user))


def _prepare_sqlite(scratch: Path) -> Path:
    """The suite is compiled together with the library that it tests."""
    need("cc", "make", "tclsh")
    folder = unpacked(scratch, "sqlite3")
    if not (folder / "testfixture").exists():
        for command in (["./configure"], ["make", "testfixture"]):
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise Unavailable(f"sqlite's testfixture could not be built (tcl-dev?): {done.stderr.strip()[-200:]}")
    return folder


def _run_sqlite(folder: Path, environment: dict[str, str]) -> Results:
    results: Results = {}
    for script in sorted({path for family in SQLITE_TESTS for path in (folder / "test").glob(f"{family}*.test")}):
        with tempfile.TemporaryDirectory() as scratch:
            output = said(["timeout", "600", str(folder / "testfixture"), str(script)], Path(scratch), environment)
        found = of_sqlite(output) | {"ends": "passed" if " errors out of " in output else "failed"}
        results |= {f"{script.stem}: {test}": result for test, result in found.items()}
    return results


SUITES = (
    Suite("python", _prepare_python, _run_python),
    Suite("redis", _prepare_redis, _run_redis, after="libc.so.6"),
    Suite("memcached", _prepare_memcached, _run_memcached),
    Suite("git", _prepare_git, _run_git),
    Suite("postgresql", _prepare_postgresql, _run_postgresql),
    Suite("sqlite", _prepare_sqlite, _run_sqlite),
)


# ---- running them


def environment_for(suite: Suite, library: Path | None) -> dict[str, str]:
    """For glibc, `library` is None."""
    preload = ":".join(filter(None, (str(library) if library else "", suite.after)))
    return clean_environment() | ({"LD_PRELOAD": preload} if preload else {})


def run_both(suite: Suite, scratch: Path, library: Path) -> Comparison:
    folder = suite.prepare(scratch)
    return compare(suite.run(folder, environment_for(suite, None)), suite.run(folder, environment_for(suite, library)))


def lines(name: str, comparison: Comparison) -> list[str]:
    counts = ", ".join(f"{comparison.counts.get(kind, 0):,} {kind}" for kind in ("passed", "failed", "skipped"))
    end = "the same on Terrace" if comparison.same else f"{len(comparison.different)} DIFFERENT on Terrace" if comparison.counts else "NOTHING RAN"
    return [
        f"{name:10} {counts}; {end}",
        *(f"  {test}: {plain} on glibc, {ours} on Terrace" for test, plain, ours in comparison.different),
    ]


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="terrace bench suites", description=__doc__.partition("\n")[0] if __doc__ else None)
    names = [suite.name for suite in SUITES]
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=f"default all: {' '.join(names)}")
    parser.add_argument("--library", type=Path, default=ROOT / "build" / "release" / "libterrace.so")
    parser.add_argument("--scratch", type=Path, default=ROOT / "build" / "suites", help="where sources are unpacked")
    options = parser.parse_args(argv)
    if unknown := sorted(set(options.suites) - set(names)):
        parser.error(f"there is no suite {' '.join(unknown)}; there are: {' '.join(names)}")
    options.scratch.mkdir(parents=True, exist_ok=True)
    status = 0
    for suite in SUITES:
        if options.suites and suite.name not in options.suites:
            continue
        try:
            comparison = run_both(suite, options.scratch.resolve(), options.library.resolve())
        except Unavailable as why:
            print(f"{suite.name:10} not run: {why}", flush=True)
            continue
        print("\n".join(lines(suite.name, comparison)), flush=True)
        status |= not comparison.same
    return int(status)
