#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""cmake --install into an empty prefix; a C and a C++ program are built and run against each way of finding the libraries.

install.py --build DIR [--cmake CMAKE] [--part] [--update]      --update rewrites the list of exported symbols, symbols.txt
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

# A space of 64 KiB, handed out once. C11 and C++.
LAB_PROGRAM = r"""
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <terrace/lab_emit.h>

enum { alignment = 16, young = 65536 };
#ifdef __cplusplus
alignas(128)
#else
_Alignas(128)
#endif
static char memory[1 << 22]; /* of the engine: a buffer per possible cpu */
static char space[young + alignment];
static char* top;
static char* end;
static size_t filled;

static void* source(void* self, unsigned node, size_t min, size_t desired, size_t* actual) {
  const size_t room = (size_t)(end - top);
  char* const start = top;
  (void)self;
  (void)node;
  if (room < min) return NULL;
  *actual = desired < room ? desired : room;
  top += *actual;
  return start;
}
static void fill(void* self, void* from, void* to) {
  (void)self;
  filled += (size_t)((char*)to - (char*)from);
}

int main(void) {
  struct terrace_lab_config config;
  struct terrace_lab_heap* heap;
  struct terrace_lab_thread thread;
  struct terrace_lab_counters counters;
  size_t objects = 0;
  const void* p;
  memset(&config, 0, sizeof config);
  config.abi = TERRACE_LAB_ABI;
  config.alignment = alignment;
  config.young_bytes = young;
  config.source = source;
  config.fill = fill;
  config.levels[TERRACE_LAB_THREAD].size = 1024;
  config.levels[TERRACE_LAB_CORE].size = 8192;
  config.levels[TERRACE_LAB_CORE].sync = TERRACE_LAB_RESTARTABLE;
  if (terrace_lab_heap_bytes(&config) == 0 || terrace_lab_heap_bytes(&config) > sizeof memory) return 1;
  top = space + (alignment - (uintptr_t)space % alignment) % alignment;
  end = top + young;
  heap = terrace_lab_init(memory, &config);
  if (heap == NULL) return 2;
  terrace_lab_attach(heap, &thread);
  while ((p = terrace_lab_allocate(&thread, 48)) != NULL) {
    if ((uintptr_t)p % alignment != 0) return 3;
    ++objects;
  }
  if (terrace_lab_retire_all(heap) != 0) return 6;
  if (objects * 48 + filled != young) return 4;
  terrace_lab_collected(heap, 0);
  terrace_lab_read_counters(heap, &counters);
  if (counters.collections != 1 || counters.level[TERRACE_LAB_CORE].labs == 0) return 5;
  terrace_lab_detach(&thread);
  puts("every byte is an object or filled");
  return 0;
}
"""

# Beside the malloc of libc. C11 and C++.
CS_PROGRAM = r"""
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <terrace/cs.h>

struct counter {
  int64_t value;
  char line[56];
};
static struct counter* counters;
enum { rounds = 100000, threads = 4 };

static void* count(void* unused) {
  int i, slot;
  (void)unused;
  for (i = 0; i < rounds; ++i) {
    do {
      slot = terrace_cs_begin();
    } while (slot < 0 || terrace_cs_store64(&counters[slot].value, counters[slot].value + 1) != TERRACE_CS_OK);
    terrace_cs_end();
  }
  return NULL;
}

int main(void) {
  pthread_t t[threads];
  void* p = malloc(100);
  int64_t sum = 0;
  unsigned i;
  if (malloc_usable_size(p) == 112) return 1; /* Terrace's class */
  free(p);
  counters = (struct counter*)calloc(terrace_cs_slots(), sizeof *counters);
  for (i = 0; i < threads; ++i) pthread_create(&t[i], NULL, count, NULL);
  for (i = 0; i < threads; ++i) pthread_join(t[i], NULL);
  for (i = 0; i < terrace_cs_slots(); ++i) sum += counters[i].value;
  if (sum != (int64_t)rounds * threads) return 2;
  free(counters);
  puts("nothing is lost");
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
foreach(part lab cs)
  add_executable(c_${part} ${part}.c)
  add_executable(cxx_${part} ${part}.cpp)
  target_link_libraries(c_${part} PRIVATE terrace::${part})
  target_link_libraries(cxx_${part} PRIVATE terrace::${part})
endforeach()
"""


# Without C++.
CMAKE_C_PROJECT = """
cmake_minimum_required(VERSION 3.25)
project(runtime LANGUAGES C)
find_package(terrace 0.1 REQUIRED)
foreach(part lab cs)
  add_executable(c_${part} ${part}.c)
  target_link_libraries(c_${part} PRIVATE terrace::${part})
endforeach()
"""

# As a part of a project that looks at none of its warnings and has no tests of it.
CMAKE_PART = """
cmake_minimum_required(VERSION 3.25)
project(whole LANGUAGES C CXX)
add_subdirectory(%s terrace)
foreach(target terrace static)
  add_executable(c_${target} program.c)
  target_link_libraries(c_${target} PRIVATE terrace::${target})
endforeach()
foreach(part lab cs)
  add_executable(c_${part} ${part}.c)
  target_link_libraries(c_${part} PRIVATE terrace::${part})
endforeach()
install(TARGETS c_lab)
if(TARGET terrace_record OR BUILD_TESTING OR TERRACE_TESTS OR TERRACE_BENCH)
  message(FATAL_ERROR "more than the libraries")
endif()
"""

PARTS = {"cs": CS_PROGRAM, "lab": LAB_PROGRAM}
STRICT = ("-Wall", "-Wextra", "-pedantic", "-Werror")
# What a library beside malloc must not define: its names, and the operators of C++.
OF_MALLOC = re.compile(r"malloc.*|.*_memalign|memalign|calloc|realloc.*|free|cfree|aligned_alloc|p?valloc|_Zn[wa].*|_Zd[la].*")


def run(*command: object, **more: object) -> str:
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, **more)  # type: ignore[call-overload]
    if done.returncode != 0:
        sys.exit(f"FAILED ({done.returncode}): {' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return str(done.stdout)


def needed_by(program: pathlib.Path) -> set[str]:
    return set(re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-dW", program)))


def check_object(library: pathlib.Path, update: bool) -> None:
    dynamic = run("readelf", "-dW", library)
    needed = needed_by(library)
    assert needed <= {"libc.so.6", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}, f"depends on {needed}"
    assert "[libterrace.so.0]" in dynamic, "SONAME"
    lines = run("nm", "-D", "--defined-only", library).splitlines()
    symbols = sorted({line.split()[-1].split("@")[0] for line in lines if " A " not in line})
    expected = HERE / "symbols.txt"
    if update:
        expected.write_text("\n".join(symbols) + "\n")
    assert symbols == expected.read_text().split(), f"exported symbols changed: {set(symbols) ^ set(expected.read_text().split())}"


def declared_in(header: pathlib.Path) -> set[str]:
    """Functions that a C header declares and does not define."""
    text = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.DOTALL)
    inline = set(re.findall(r"static inline [^;{(]*?(\w+)\(", text))
    return set(re.findall(r"^(?!typedef|static)[^\n;{(]*?\b(\w+)\([^;{]*\);", text, flags=re.MULTILINE)) - inline


def of_the_cxx_library(name: str) -> bool:
    """Templates of the standard library and placement new: weak, and visible, where a build without optimisation leaves them."""
    return name.startswith(("_ZS", "_ZNS", "_ZNKS", "_ZN9__gnu_cxx", "_ZNK9__gnu_cxx", "_ZnwmPv"))


def check_part(archive: pathlib.Path, headers: list[pathlib.Path]) -> None:
    lines = [line.split() for line in run("nm", "-g", "--defined-only", archive).splitlines()]
    lines = [line for line in lines if len(line) == 3 and not (line[1] in "WVu" and of_the_cxx_library(line[2]))]
    malloc = sorted(line[2] for line in lines if OF_MALLOC.fullmatch(line[2]))
    assert not malloc, f"names of malloc: {malloc}"
    rows = [line.split() for line in run("readelf", "-sW", archive).splitlines()]
    visible = {r[7] for r in rows if len(r) == 8 and r[4] in ("GLOBAL", "WEAK", "UNIQUE") and r[5] == "DEFAULT" and r[6] != "UND"}
    visible = {name for name in visible if not of_the_cxx_library(name)}
    assert visible, "no symbols"
    declared = set().union(*map(declared_in, headers))
    assert visible == declared, f"visible or declared, not both: {visible ^ declared}"


def check_part_by_pkg_config(part: str, libdir: pathlib.Path, work: pathlib.Path) -> None:
    environment = {**os.environ, "PKG_CONFIG_PATH": str(libdir / "pkgconfig")}
    flags = run("pkg-config", "--cflags", "--libs", f"terrace-{part}", env=environment).split()
    for compiler, standard, suffix in (("cc", "c11", "c"), ("c++", "c++17", "cpp"), ("c++", "c++20", "cpp")):
        run(compiler, f"-std={standard}", "-O1", "-pthread", *STRICT, f"{part}.{suffix}", "-o", part, *flags, cwd=work)
        run(work / part)
        needed = needed_by(work / part)
        assert "libterrace.so.0" not in needed, needed
        assert compiler != "cc" or not any(name.startswith(("libstdc++", "libgcc_s")) for name in needed), needed
    print(f"pkg-config, terrace-{part}: C11, C++17, C++20")


def check_parts(cmake: str, prefix: pathlib.Path, libdir: pathlib.Path, work: pathlib.Path) -> None:
    project = work / "runtime"
    project.mkdir()
    for part, text in PARTS.items():
        include = prefix / "include" / "terrace"
        check_part(libdir / f"libterrace_{part}.a", [include / f"{part}.h", *include.glob(f"{part}_*.h")])
        for path in (work / f"{part}.c", work / f"{part}.cpp", project / f"{part}.c"):
            path.write_text(text)
        check_part_by_pkg_config(part, libdir, work)
    (project / "CMakeLists.txt").write_text(CMAKE_C_PROJECT)
    run(cmake, "-S", project, "-B", project / "build", f"-DCMAKE_PREFIX_PATH={prefix}")
    run(cmake, "--build", project / "build")
    for part in PARTS:
        run(project / "build" / f"c_{part}")
    print("CMake: critical sections and the LAB engine in a project without C++")


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
    for name in ("c_terrace", "cxx_terrace", "c_static", "cxx_static", "c_lab", "cxx_lab", "c_cs", "cxx_cs"):
        run(work / "build" / name)
    for part in PARTS:
        needed = needed_by(work / "build" / f"c_{part}")
        assert not any(name.startswith(("libstdc++", "libgcc_s", "libterrace")) for name in needed), needed
    print("CMake: shared and static and the parts, C and C++")


def check_as_a_part(cmake: str, work: pathlib.Path) -> None:
    whole = work / "whole"
    whole.mkdir()
    for name in ("program.c", "lab.c", "cs.c"):
        shutil.copy(work / name, whole)
    (whole / "CMakeLists.txt").write_text(CMAKE_PART % HERE.parent.parent)
    run(cmake, "-S", whole, "-B", whole / "build", "-DCMAKE_BUILD_TYPE=Debug")
    run(cmake, "--build", whole / "build", "-j", str(os.cpu_count()))
    for name in ("c_terrace", "c_static", "c_lab", "c_cs"):
        run(whole / "build" / name)
    run(cmake, "--install", whole / "build", "--prefix", work / "of_whole")
    files = [path.name for path in (work / "of_whole").rglob("*") if path.is_file()]
    assert files == ["c_lab"], f"installs {files}"
    print("CMake: as a part of another project")


UMEM_PROGRAM = r"""
#include <dlfcn.h>
#include <malloc.h>
#include <stdlib.h>
#include <umem.h>

static int made;
static int make(void *object, void *data, int flags) { (void)object, (void)data, (void)flags; return ++made == 0; }

int main(int argc, char **argv) {
  void *(*alloc)(size_t, int) = umem_alloc;
  if (argc > 1) { /* as Varnish does it */
    void *library = dlopen(argv[1], RTLD_NOW);
    if (library == NULL || (alloc = __extension__(void *(*)(size_t, int)) dlsym(library, "umem_alloc")) == NULL) return 1;
  }
  if (alloc(100, UMEM_DEFAULT) == NULL) return 2;
  umem_cache_t *cache = umem_cache_create("things", 24, 0, make, NULL, NULL, NULL, NULL, 0);
  umem_cache_free(cache, umem_cache_alloc(cache, UMEM_NOFAIL));
  umem_cache_destroy(cache);
  umem_free(umem_zalloc(100, UMEM_DEFAULT), 100);
  free(malloc(100));
  return made == 1 ? 0 : 3;
}
"""


UMEM_FOR_DEBUGGERS = {
    *("umem_error_buffer", "umem_error_begin"),
    *("umem_transaction_log", "umem_content_log", "umem_failure_log", "umem_slab_log"),
}


def check_umem(libdir: pathlib.Path, include: pathlib.Path, work: pathlib.Path) -> None:
    """What is written for illumos: cc prog.c -lumem; and the same in C++ without a C++ library."""
    source = work / "umem.c"
    source.write_text(UMEM_PROGRAM)
    declared = declared_in(include / "umem.h") | declared_in(include / "sys/vmem.h") | UMEM_FOR_DEBUGGERS
    for name, has_malloc in (("umem", False), ("umem_malloc", True)):
        library = libdir / f"lib{name}.so"
        assert f"[lib{name}.so.1]" in run("readelf", "-dW", library), "SONAME"
        assert needed_by(library) <= {"libc.so.6", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}, needed_by(library)
        lines = [line.split() for line in run("nm", "-D", "--defined-only", library).splitlines()]
        symbols = {line[-1].split("@")[0] for line in lines if line[1] != "A"}
        assert symbols >= declared, declared - symbols
        assert ("malloc" in symbols) == has_malloc, symbols
        assert has_malloc or symbols == declared, symbols ^ declared
        versions = {line[-1] for line in lines}
        assert {"umem_alloc@@SUNW_1.1", "umem_setmtbf@@ILLUMOS_0.1"} <= versions, versions
        run("cc", *STRICT, "-O1", f"-I{include}", source, "-o", name, f"-L{libdir}", f"-l{name}", f"-Wl,-rpath,{libdir}", cwd=work)
        run(work / name)
    run(work / "umem", libdir / "libumem.so.1")
    run("c++", "-fsyntax-only", "-x", "c++", "-std=c++17", *STRICT, f"-I{include}", "-include", "umem.h", "/dev/null")
    print("libumem: linked, with malloc, by dlopen")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--cmake", default="cmake")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--part", action="store_true", help="also builds this project as a part of another")
    arguments = parser.parse_args()
    if missing := [tool for tool in ("pkg-config", "readelf", "nm", "cc", "c++") if shutil.which(tool) is None]:
        print(f"skipped: no {', '.join(missing)}")
        return SKIP
    with tempfile.TemporaryDirectory() as directory:
        prefix, work = pathlib.Path(directory) / "prefix", pathlib.Path(directory) / "work"
        work.mkdir()
        run(arguments.cmake, "--install", arguments.build, "--prefix", prefix)
        (library,) = prefix.rglob("libterrace.so")
        for header in ("malloc.h", "cs.h", "lab.h", "lab_emit.h", "stats.h", "version.h"):
            assert (prefix / "include/terrace" / header).is_file(), header
        check_object(library, arguments.update)
        (work / "program.c").write_text(C_PROGRAM)
        (work / "program.cpp").write_text(CXX_PROGRAM)
        check_pkg_config(prefix, library.parent, work)
        check_parts(arguments.cmake, prefix, library.parent, work)
        check_cmake(arguments.cmake, prefix, work)
        check_umem(library.parent, prefix / "include", work)
        if arguments.part:
            check_as_a_part(arguments.cmake, work)
    return 0


if __name__ == "__main__":
    sys.exit(main())
