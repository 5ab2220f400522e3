#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""cmake --install into an empty prefix; a C and a C++ program are built and run against each way of finding the libraries.

install.py --build DIR [--cmake CMAKE] [--part] [--update]      --update rewrites the list of exported symbols, symbols.txt
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
PROGRAMS = HERE / "programs"
EXAMPLES = HERE.parent.parent / "docs" / "examples"
SKIP = 77

PARTS = ("cs", "lab")
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


def check_part(archive: pathlib.Path, headers: list[pathlib.Path], more: set[str] | frozenset[str] = frozenset()) -> None:
    lines = [line.split() for line in run("nm", "-g", "--defined-only", archive).splitlines()]
    lines = [line for line in lines if len(line) == 3 and not (line[1] in "WVu" and of_the_cxx_library(line[2]))]
    malloc = sorted(line[2] for line in lines if OF_MALLOC.fullmatch(line[2]))
    assert not malloc, f"names of malloc: {malloc}"
    rows = [line.split() for line in run("readelf", "-sW", archive).splitlines()]
    visible = {r[7] for r in rows if len(r) == 8 and r[4] in ("GLOBAL", "WEAK", "UNIQUE") and r[5] == "DEFAULT" and r[6] != "UND"}
    visible = {name for name in visible if not of_the_cxx_library(name)}
    assert visible, "no symbols"
    declared = more.union(*map(declared_in, headers))
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
    for part in PARTS:
        include = prefix / "include" / "terrace"
        check_part(libdir / f"libterrace_{part}.a", [include / f"{part}.h", *include.glob(f"{part}_*.h")])
        for path in (work / f"{part}.c", work / f"{part}.cpp", project / f"{part}.c"):
            shutil.copy(PROGRAMS / f"{part}.c", path)
        check_part_by_pkg_config(part, libdir, work)
    shutil.copy(PROGRAMS / "runtime.cmake", project / "CMakeLists.txt")
    shutil.copy(PROGRAMS / "program.c", project)
    run(cmake, "-S", project, "-B", project / "build", f"-DCMAKE_PREFIX_PATH={prefix}")
    run(cmake, "--build", project / "build")
    for part in (*PARTS, "static"):
        run(project / "build" / f"c_{part}")
    print("CMake: critical sections, the LAB engine and the archive in a project without C++")


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


def check_examples(libdir: pathlib.Path, work: pathlib.Path) -> None:
    """Those of the guides, by the commands that the guides have."""
    environment = {**os.environ, "PKG_CONFIG_PATH": str(libdir / "pkgconfig")}
    examples = (("toy_runtime.c", "cc", "gnu11", "-lab"), ("counter.c", "cc", "c11", ""), ("message_pool.cpp", "c++", "c++20", ""))
    for name, compiler, standard, part in examples:
        flags = run("pkg-config", "--cflags", "--libs", f"terrace{part}", env=environment).split()
        options = (f"-std={standard}", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread", f"-Wl,-rpath,{libdir}")
        run(compiler, *options, EXAMPLES / name, "-o", "example", *flags, cwd=work)
        run(work / "example")
    print("examples of the guides")


def check_cmake(cmake: str, prefix: pathlib.Path, work: pathlib.Path) -> None:
    shutil.copy(PROGRAMS / "user.cmake", work / "CMakeLists.txt")
    run(cmake, "-S", work, "-B", work / "build", f"-DCMAKE_PREFIX_PATH={prefix}")
    run(cmake, "--build", work / "build")
    for name in ("c_terrace", "cxx_terrace", "c_static", "cxx_static", "c_lab", "cxx_lab", "c_cs", "cxx_cs"):
        run(work / "build" / name)
    for part in (*PARTS, "static"):
        needed = needed_by(work / "build" / f"c_{part}")
        assert not any(name.startswith(("libstdc++", "libgcc_s", "libterrace")) for name in needed), needed
    print("CMake: shared and static and the parts, C and C++")


def check_as_a_part(cmake: str, work: pathlib.Path) -> None:
    whole = work / "whole"
    whole.mkdir()
    for name in ("program.c", "lab.c", "cs.c"):
        shutil.copy(work / name, whole)
    (whole / "CMakeLists.txt").write_text((PROGRAMS / "whole.cmake").read_text() % HERE.parent.parent)
    run(cmake, "-S", whole, "-B", whole / "build", "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_UNITY_BUILD=ON")
    run(cmake, "--build", whole / "build", "-j", str(os.cpu_count()))
    for name in ("c_terrace", "c_static", "c_lab", "c_cs"):
        run(whole / "build" / name)
    run(cmake, "--install", whole / "build", "--prefix", work / "of_whole")
    files = [path.name for path in (work / "of_whole").rglob("*") if path.is_file()]
    assert files == ["c_lab"], f"installs {files}"
    print("CMake: as a part of another project")


UMEM_FOR_DEBUGGERS = {
    *("umem_error_buffer", "umem_error_begin", "umem_abort_info"),
    *("umem_transaction_log", "umem_content_log", "umem_failure_log", "umem_slab_log"),
}
DESCRIPTORS = {"terrace_debug_descriptor", "terrace_umem_descriptor"}


def check_umem(libdir: pathlib.Path, include: pathlib.Path, work: pathlib.Path) -> None:
    """What is written for illumos: cc prog.c -lumem; and the same in C++ without a C++ library."""
    source = PROGRAMS / "umem.c"
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
    check_part(libdir / "libumem.a", [include / "umem.h", include / "sys/vmem.h"], UMEM_FOR_DEBUGGERS | DESCRIPTORS)
    check_umem_by_pkg_config(libdir, source, work)


def check_umem_by_pkg_config(libdir: pathlib.Path, source: pathlib.Path, work: pathlib.Path) -> None:
    """Shared; the archive; that and malloc's; and each without any shared object."""
    environment = {**os.environ, "PKG_CONFIG_PATH": str(libdir / "pkgconfig")}
    assert run("pkg-config", "--modversion", "umem", env=environment).strip() == "1.0.0"
    shared = run("pkg-config", "--cflags", "--libs", "umem", env=environment).split()
    static = run("pkg-config", "--cflags", "--libs", "--static", "umem", env=environment).split()
    archive = [str(libdir / "libumem.a") if f == "-lumem" else f for f in static]
    with_malloc = [str(libdir / "libterrace.a"), *archive]
    ways = [[*shared, f"-Wl,-rpath,{libdir}"], archive, with_malloc]
    if subprocess.run(["cc", "-static", "-xc", "-", "-o", work / "empty"], input=b"int main(void) { return 0; }", check=False).returncode == 0:
        ways += [["-static", *static], ["-static", *with_malloc]]
    for way in ways:
        run("cc", *STRICT, "-O1", source, "-o", "umem", *way, cwd=work)
        needed = needed_by(work / "umem") - {"ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
        assert needed <= {"libc.so.6", *(["libumem.so.1"] if way == ways[0] else [])}, needed
        for debug in ("", "default,verbose"):
            run(work / "umem", env={**os.environ, "UMEM_DEBUG": debug})
        if way != ways[0]:  # members that nothing of the program refers to
            assert {"terrace_enter_vfork", "terrace_debug_descriptor", "terrace_umem_descriptor"} <= set(run("nm", work / "umem").split())
    print("pkg-config, umem: shared, archive, both archives, -static")


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
        for header in ("malloc.h", "cs.h", "lab.h", "lab_emit.h", "options.h", "profile.h", "stats.h", "version.h"):
            assert (prefix / "include/terrace" / header).is_file(), header
        check_object(library, arguments.update)
        for source in ("program.c", "program.cpp"):
            shutil.copy(PROGRAMS / source, work)
        check_pkg_config(prefix, library.parent, work)
        check_examples(library.parent, work)
        check_parts(arguments.cmake, prefix, library.parent, work)
        check_cmake(arguments.cmake, prefix, work)
        check_umem(library.parent, prefix / "include", work)
        if arguments.part:
            check_as_a_part(arguments.cmake, work)
    return 0


if __name__ == "__main__":
    sys.exit(main())
