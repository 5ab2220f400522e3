#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""The operators of C++ in every way in which a program comes to Terrace and to its C++ runtime; a program in C needs none.

linking.py --build DIR
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
PROGRAMS = HERE / "programs"
INCLUDE = HERE.parent.parent / "include"
SKIP = 77

# Source and definitions of each program: exit status 0 says that all was well.
PROGRAM = {
    "throws": ("throws.cpp",),
    "catches_all": ("catches_all.cpp",),
    "replaces": ("replaces.cpp",),
    "replaces_arrays": ("replaces.cpp", "-DARRAYS"),
    "program": ("program.c",),
}
STATIC_RUNTIME = ("-static-libstdc++", "-static-libgcc")


def ways(build: pathlib.Path) -> list[tuple[str, tuple[str, ...], str | None]]:
    """A name, what the linker is told, and what is preloaded."""
    archive, shared = (str(build / "libterrace.a"),), (f"-L{build}", "-lterrace", f"-Wl,-rpath,{build}")
    preloaded, umem = str(build / "libterrace.so"), str(build / "libumem_malloc.so")
    return [
        ("preload", (), preloaded),
        ("preload, -no-pie", ("-no-pie",), preloaded),
        ("preload, static runtime", STATIC_RUNTIME, preloaded),
        ("preload libumem_malloc", (), umem),
        ("-lterrace", shared, None),
        ("-lterrace, static runtime", (*shared, *STATIC_RUNTIME), None),
        ("-lumem_malloc", (f"-L{build}", "-lumem_malloc", f"-Wl,-rpath,{build}"), None),
        ("archive", archive, None),
        ("archive, static runtime", (*archive, *STATIC_RUNTIME), None),
        ("archive, -static", (*archive, "-static"), None),
        ("archive, -static-pie", (*archive, "-static-pie"), None),
    ]


def run(*command: object, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, env=environment)


def can_link(work: pathlib.Path, options: tuple[str, ...]) -> bool:
    """Whether this machine has the static libraries that the options ask for."""
    static = [option for option in options if option.startswith("-static") or option == "-no-pie"]
    return not static or run("c++", work / "empty.cpp", "-o", work / "empty", *static).returncode == 0


def compile_all(work: pathlib.Path) -> None:
    (work / "empty.cpp").write_text("int main() {}\n")
    for program, (source, *definitions) in PROGRAM.items():
        language = ("c++", "-std=c++17") if source.endswith(".cpp") else ("cc", "-std=gnu11")
        options = ("-O1", "-fPIE", "-Wall", f"-I{INCLUDE}", *definitions)
        compiled = run(*language, *options, "-c", PROGRAMS / source, "-o", work / f"{program}.o")
        if compiled.returncode != 0:
            sys.exit(compiled.stderr)


def check(way: str, program: str, options: tuple[str, ...], preload: str | None, work: pathlib.Path) -> str | None:
    """What is wrong with a program that came to Terrace this way."""
    in_c = PROGRAM[program][0].endswith(".c")
    if in_c and not any("libterrace.a" in option or option == "-lterrace" for option in options):
        return None  # it wants terrace_malloc of whom it is linked to
    options = tuple(option for option in options if not (in_c and option == "-static-libstdc++"))
    linked = run("cc" if in_c else "c++", work / f"{program}.o", "-o", work / program, *options, "-pthread", "-ldl")
    if linked.returncode != 0:
        return f"{way}: {program} is not linked\n{linked.stderr}"
    if in_c and "libstdc++" in run("readelf", "-dW", work / program).stdout:
        return f"{way}: {program} depends on libstdc++"
    environment = {**os.environ, **({"LD_PRELOAD": preload} if preload else {})}
    done = run(work / program, environment=environment)
    return f"{way}: {program} ends with {done.returncode}\n{done.stdout}{done.stderr}" if done.returncode != 0 else None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    build = parser.parse_args().build.resolve()
    if missing := [tool for tool in ("cc", "c++", "readelf") if shutil.which(tool) is None]:
        print(f"skipped: no {', '.join(missing)}")
        return SKIP
    failures = []
    with tempfile.TemporaryDirectory() as directory:
        work = pathlib.Path(directory)
        compile_all(work)
        for way, options, preload in ways(build):
            if not can_link(work, options):
                print(f"{way}: skipped, no static libraries")
                continue
            found = [fault for program in PROGRAM if (fault := check(way, program, options, preload, work)) is not None]
            print(f"{way}: {'FAILED' if found else 'as the standard says'}")
            failures += found
    print("\n".join(failures))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
