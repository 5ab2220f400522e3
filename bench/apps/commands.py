# SPDX-License-Identifier: MIT OR Apache-2.0
"""Compilers, a solver, a renderer, compressors and other programs that start, work and end.

Compilers: the compiler proper, not its driver, is what is measured (cc1plus; clang's driver compiles within its own process).
cc1plus has its trees in a collected heap of its own, and its operator new is in the program itself and calls malloc.
git starts itself for the parts of its work; all of them run on the allocator, and so do OpenMP's threads in ImageMagick.
xz, zstd and sort take few and large blocks: they show what large allocations and threads cost, not the fast path.
ghostscript has memory managers of its own, z3 puts a word before each block: both get what they manage from malloc.
"""

import shutil
import subprocess
from pathlib import Path

import generated
from recipe import Recipe, find
from said import compiler_command, without_times
from workload import clean_environment

THREADS = 4


def _sources(folder: Path) -> None:
    generated.write_sources(folder, structures=3)


def _cc1plus(_folder: Path) -> list[str]:
    driver = [find("g++") or "g++", "-###", "-std=c++17", "-O1", "-S", "large.cpp", "-o", "large.s"]
    said = subprocess.run(driver, env=clean_environment(), capture_output=True, text=True, check=True).stderr
    return compiler_command(said, "/cc1plus")


def _clang() -> str:
    return next((name for name in ("clang++", *(f"clang++-{v}" for v in range(21, 12, -1))) if find(name)), "clang++")


def _compilers() -> list[Recipe]:
    clang = _clang()
    command = [find(clang) or clang, "-std=c++17", "-O1", "-S", "large.cpp", "-o", "large.s"]
    return [
        Recipe("gcc", _cc1plus, "", ("g++",), prepare=_sources, artefacts=("large.s",)),
        Recipe("clang", lambda _: command, "", (clang,), prepare=_sources, artefacts=("large.s",)),
    ]


def _git(*words: str) -> list[str]:
    settings = {"pack.threads": str(THREADS), "core.pager": "cat", "log.date": "iso", "gc.auto": "0"}
    return [find("git") or "git", *(w for k, v in settings.items() for w in ("-c", f"{k}={v}")), *words]


def _all_objects(folder: Path) -> str:
    """What a repository holds after it was packed anew: read and checked by git itself."""
    git = find("git") or "git"
    checked = subprocess.run([git, "-C", "gc.git", "fsck", "--full"], cwd=folder, env=clean_environment(), capture_output=True,
                             text=True, check=False)
    listed = subprocess.run([git, "-C", "gc.git", "rev-list", "--objects", "--all"], cwd=folder, env=clean_environment(),
                            capture_output=True, text=True, check=False)
    return f"{checked.returncode} {listed.returncode} {listed.stdout}"


def _long_history(folder: Path) -> None:
    generated.write_history(folder, commits=9000)


def _history() -> list[Recipe]:
    repack = _git("-C", "gc.git", "repack", "-a", "-d", "-f", "-q", "--window=40", "--depth=80")
    log = _git("-C", "history.git", "log", "-p", "--stat", "--word-diff=porcelain", "--output=log.txt", "main")
    return [
        Recipe("git-repack", lambda _: repack, "", ("git",), THREADS,
               prepare=generated.write_history, before=generated.fresh_history, inspect=_all_objects),
        Recipe("git-log", lambda _: log, "", ("git",), prepare=_long_history, artefacts=("history.git/log.txt",)),
    ]


def _some_lines(folder: Path) -> None:
    generated.write_lines(folder, 400_000)


def _many_lines(folder: Path) -> None:
    generated.write_lines(folder, 1_200_000)


def _text() -> list[Recipe]:
    sort, xz, zstd = (find(name) or name for name in ("sort", "xz", "zstd"))
    threads = str(THREADS)
    sorting = [sort, "-S", "100M", f"--parallel={threads}", "-k2", "lines.txt", "-o", "sorted.txt"]
    packing = [xz, "-T", threads, "--block-size=1MiB", "-1", "--keep", "--force", "lines.txt"]
    fast_packing = [zstd, f"-T{threads}", "-12", "-B1048576", "-q", "-f", "lines.txt", "-o", "lines.zst"]
    query = "group_by(.name) | map({name: .[0].name, n: length, tags: (map(.tags) | add | unique | length), " \
            "text: (map(.nested.text) | join(\"\") | length)}) | sort_by(.n, .name) | .[]"
    return [
        Recipe("sort", lambda _: sorting, "", ("sort",), THREADS, prepare=_many_lines, artefacts=("sorted.txt",)),
        Recipe("xz", lambda _: packing, "", ("xz",), THREADS, prepare=_some_lines, artefacts=("lines.txt.xz",)),
        Recipe("zstd", lambda _: fast_packing, "", ("zstd",), THREADS, prepare=_some_lines, artefacts=("lines.zst",)),
        Recipe("jq", lambda _: [find("jq") or "jq", "-c", query, "documents.json"], r'"name":"name\d+"', ("jq",),
               prepare=generated.write_documents),
    ]


def _magick() -> str:
    """ImageMagick 7's name, Debian's for version 6, and the general one of version 6."""
    return next((name for name in ("magick", "convert-im6.q16", "convert") if find(name)), "convert")


def _pictures() -> list[Recipe]:
    magick = _magick()
    steps = "-rotate 7 -resize 70% -blur 0x1.5 -unsharp 0x1 -modulate 110,120 -colors 64 -depth 8".split()
    convert = [find(magick) or magick, "image.ppm", *steps, "result.ppm"]
    render = [find("gs") or "gs", "-q", "-dNOPAUSE", "-dBATCH", "-dSAFER", "-sDEVICE=ppmraw", "-r120", "-dTextAlphaBits=4",
              "-dGraphicsAlphaBits=4", "-o", "result.ppm", "pages.ps"]
    return [
        Recipe("imagemagick", lambda _: convert, "", (magick,), THREADS, prepare=generated.write_image, artefacts=("result.ppm",),
               environment={"OMP_NUM_THREADS": str(THREADS)}),
        Recipe("ghostscript", lambda _: render, "", ("gs",), prepare=generated.write_pages, artefacts=("result.ppm",)),
    ]


def _solver() -> list[Recipe]:
    z3 = [find("z3") or "z3", "smt.random_seed=1", "sat.random_seed=1", "problems.smt2"]
    return [Recipe("z3", lambda _: z3, r"^((un)?sat\n){12}$", ("z3",), prepare=generated.write_problems)]


def _fresh_database(folder: Path) -> None:
    for left in folder.glob("items.db*"):
        left.unlink()


def _fresh_store(folder: Path) -> None:
    shutil.rmtree(folder / "store", ignore_errors=True)


def _databases() -> list[Recipe]:
    sqlite, bench = find("sqlite3") or "sqlite3", find("db_bench") or "db_bench"
    filling = "fillrandom,overwrite,readrandom,seekrandom,deleterandom,compact,readrandom"
    store = [bench, f"--benchmarks={filling}", "--db=store", "--num=30000", f"--threads={THREADS}", "--seed=1", "--value_size=200",
             "--write_buffer_size=2097152", "--compression_type=none", "--disable_wal=true"]
    return [
        Recipe("sqlite-memory", lambda _: [sqlite, ":memory:", generated.SQL], r"^300000\|\d+", ("sqlite3",)),
        Recipe("sqlite-file", lambda _: [sqlite, "items.db", generated.FILE_SQL], r"(?s)^51429\|.*\nok\n$", ("sqlite3",),
               before=_fresh_database, artefacts=("items.db",)),
        Recipe("rocksdb", lambda _: store, r"readrandom.*found", ("db_bench",), THREADS, before=_fresh_store, normalise=without_times),
    ]


def recipes() -> list[Recipe]:
    return [*_compilers(), *_history(), *_text(), *_pictures(), *_solver(), *_databases()]
