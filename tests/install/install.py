#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""cmake --install into an empty prefix; a C and a C++ program are built and run against each way of finding the library.

install.py --build DIR [--cmake CMAKE] [--update]      --update rewrites the list of exported symbols, symbols.txt
"""

from __future__ import annotations

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SKIP = 77

C_PROGRAM = r"""
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <terrace/cs.h>
#include <terrace/malloc.h>
#include <terrace/stats.h>
#include <terrace/version.h>

int main(void) {
  char *p = malloc(100);
  memset(p, 1, 100);
  /* The class of 112 bytes: glibc would say 104. */
  if (malloc_usable_size(p) != 112) return 1;
  free(p);
  if (terrace_cs_begin() < 0 || terrace_rung()[0] == '\0') return 2;
  p = terrace_malloc(10);
  free(p);
  char text[200000];
  if (terrace_stats_json(text, sizeof text) >= sizeof text || strstr(text, "\"allocations\":0,") == text) return 3;
  puts(terrace_version());
  return 0;
}
"""

CXX_PROGRAM = r"""
#include <cstdio>
#include <cstdlib>
#include <malloc.h>
#include <new>
#include <string>
#include <terrace/cs.h>
#include <terrace/malloc.h>
#include <terrace/stats.h>
#include <terrace/version.h>

int main() {
  auto* const s = new std::string(99, 'x');
  if (malloc_usable_size(s->data()) != 112) return 1;
  delete s;
  try {
    ::operator delete(::operator new(static_cast<std::size_t>(-1) / 4));  // a call: new expressions may be left out
    return 2;
  } catch (const std::bad_alloc&) {
  }
  std::puts(terrace_version());
  return 0;
}
"""

CMAKE_PROJECT = """
cmake_minimum_required(VERSION 3.25)
project(user LANGUAGES C CXX)
find_package(terrace 0.1 REQUIRED)
foreach(target terrace static)
  add_executable(c_${target} program.c)
  add_executable(cxx_${target} program.cpp)
  target_link_libraries(c_${target} PRIVATE terrace::${target})
  target_link_libraries(cxx_${target} PRIVATE terrace::${target})
endforeach()
"""


def run(*command: object, **more: object) -> str:
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, **more)  # type: ignore[call-overload]
    if done.returncode != 0:
        sys.exit(f"FAILED ({done.returncode}): {' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return str(done.stdout)


def check_object(library: pathlib.Path, update: bool) -> None:
    dynamic = run("readelf", "-dW", library)
    needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic))
    assert needed <= {"libc.so.6", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}, f"depends on {needed}"
    assert "[libterrace.so.0]" in dynamic, "SONAME"
    lines = run("nm", "-D", "--defined-only", library).splitlines()
    symbols = sorted({line.split()[-1].split("@")[0] for line in lines if " A " not in line})
    expected = HERE / "symbols.txt"
    if update:
        expected.write_text("\n".join(symbols) + "\n")
    assert symbols == expected.read_text().split(), f"exported symbols changed: {set(symbols) ^ set(expected.read_text().split())}"


def check_pkg_config(prefix: pathlib.Path, libdir: pathlib.Path, work: pathlib.Path) -> None:
    environment = {**os.environ, "PKG_CONFIG_PATH": str(libdir / "pkgconfig")}
    flags = run("pkg-config", "--cflags", "--libs", "terrace", env=environment).split()
    static = run("pkg-config", "--cflags", "--libs", "--static", "terrace", env=environment).split()
    static = [str(libdir / "libterrace.a") if f == "-lterrace" else f for f in static]
    for compiler, source in (("cc", "program.c"), ("c++", "program.cpp")):
        run(compiler, "-O1", source, "-o", "shared", *flags, f"-Wl,-rpath,{libdir}", cwd=work)
        assert "libterrace.so.0" in run("readelf", "-d", work / "shared")
        run(work / "shared")
        run(compiler, "-O1", source, "-o", "static", *static, cwd=work)
        assert "libterrace" not in run("readelf", "-d", work / "static")
        run(work / "static")
        print(f"pkg-config, {compiler}: shared and static")


def check_cmake(cmake: str, prefix: pathlib.Path, work: pathlib.Path) -> None:
    (work / "CMakeLists.txt").write_text(CMAKE_PROJECT)
    run(cmake, "-S", work, "-B", work / "build", f"-DCMAKE_PREFIX_PATH={prefix}")
    run(cmake, "--build", work / "build")
    for name in ("c_terrace", "cxx_terrace", "c_static", "cxx_static"):
        run(work / "build" / name)
    print("CMake: shared and static, C and C++")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--cmake", default="cmake")
    parser.add_argument("--update", action="store_true")
    arguments = parser.parse_args()
    if missing := [tool for tool in ("pkg-config", "readelf", "nm", "cc", "c++") if shutil.which(tool) is None]:
        print(f"skipped: no {', '.join(missing)}")
        return SKIP
    with tempfile.TemporaryDirectory() as directory:
        prefix, work = pathlib.Path(directory) / "prefix", pathlib.Path(directory) / "work"
        work.mkdir()
        run(arguments.cmake, "--install", arguments.build, "--prefix", prefix)
        (library,) = prefix.rglob("libterrace.so")
        for part in ("include/terrace/malloc.h", "include/terrace/cs.h", "include/terrace/stats.h", "include/terrace/version.h"):
            assert (prefix / part).is_file(), part
        check_object(library, arguments.update)
        (work / "program.c").write_text(C_PROGRAM)
        (work / "program.cpp").write_text(CXX_PROGRAM)
        check_pkg_config(prefix, library.parent, work)
        check_cmake(arguments.cmake, prefix, work)
    return 0


if __name__ == "__main__":
    sys.exit(main())
