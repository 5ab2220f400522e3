#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Builds the library for aarch64 with the cross compiler and checks each restartable sequence in the object.

Checked for every descriptor in __rseq_cs: the 4 bytes before the abort label are the signature, the protected range lies in the text,
and its last instruction is a store (the commit). Where qemu-aarch64 is installed a small program runs on the rungs without rseq, with
pages of 4, 16 and 64 KiB.
"""

import concurrent.futures
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile

SKIP = 77
PREFIX = "aarch64-linux-gnu-"
FLAGS = ["-O2", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra", "-Werror", '-DTERRACE_VERSION="cross"']
CXX_FLAGS = ["-std=c++20", "-fno-exceptions", "-fno-rtti", "-fno-threadsafe-statics", "-ftls-model=initial-exec"]
OF_ONE_FILE = {"operators.cpp": ["-fexceptions"], "no_memory.cpp": ["-fexceptions", "-frtti"]}
INJECT = "-DTERRACE_INJECT=1"
MUTANTS = ["WRONG_LENGTH", "TWO_STORES", "SLOT_REREAD", "MISSING_CHECK", "LATE_ROUND", "NOT_COMPARED", "EARLY_COMPARE"]
SIGNATURE = 0xD428BC00

PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
static void *body(void *x) {
  unsigned char *p[100] = {0};
  unsigned r = (unsigned)(long)x;
  for (int i = 0; i < 20000; i++) {
    r = r * 1664525 + 1013904223;
    int k = (r >> 8) % 100;
    size_t n = (r >> 12) % 5000;
    if (p[k] && p[k][0] != k) abort();
    free(p[k]);
    p[k] = malloc(n + 1);
    memset(p[k], k, n + 1);
  }
  for (int i = 0; i < 100; i++) free(p[i]);
  return 0;
}
int main(int argc, char **argv) {
  pthread_t t[4];
  for (long i = 0; i < 4; i++) pthread_create(&t[i], 0, body, (void *)(i + 1));
  for (int i = 0; i < 4; i++) pthread_join(t[i], 0);
  if (argc > 1 && sysconf(_SC_PAGESIZE) != atol(argv[1])) return 3;
  pid_t child = vfork();
  if (child == 0) { free(malloc(100)); _exit(7); }
  int status;
  waitpid(child, &status, 0);
  return WEXITSTATUS(status) == 7 ? 0 : 1;
}
"""


def run(*command: object) -> str:
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def compile_one(source: pathlib.Path, root: pathlib.Path, out: pathlib.Path, extra: list[str]) -> pathlib.Path:
    target = out / ("_".join(source.parts[1:]) + "".join(extra).replace("-D", "-") + ".o")
    if source.suffix == ".S":
        run(PREFIX + "gcc", *extra, "-c", source, "-o", target)
    else:
        run(PREFIX + "g++", *FLAGS, *CXX_FLAGS, *OF_ONE_FILE.get(source.name, []), *extra, f"-I{root}/src", f"-I{root}/include", "-c", source, "-o", target)
    return target


def library_sources(root: pathlib.Path, out: pathlib.Path) -> list[pathlib.Path]:
    """Those of a directory together: half of the time goes into headers."""
    sources = sorted((root / "src").rglob("*"))
    found = [p for p in sources if p.name in OF_ONE_FILE or (p.suffix == ".S" and p.parent.name == "aarch64")]
    for directory in sorted({p.parent for p in sources if p.suffix == ".cpp"}):
        together = out / ("_".join(directory.relative_to(root).parts) + ".cpp")
        together.write_text("".join(f'#include "{p}"\n' for p in sorted(directory.glob("*.cpp")) if p not in found))
        found.append(together)
    return found


def build(root: pathlib.Path, out: pathlib.Path) -> pathlib.Path:
    sources = library_sources(root, out)
    variants: list[tuple[pathlib.Path, list[str]]] = [(s, []) for s in sources]
    transaction = root / "src/arch/aarch64/transaction.S"
    names = ("heap/levels/block_levels.cpp", "heap/levels/core_level.cpp", "percpu/transaction.cpp", "shim/umem/names.cpp")
    variants += [(source, [INJECT]) for source in (transaction, *(root / "src" / name for name in names))]
    for source in (transaction, root / "tests/inject/sequences_under_delay.cpp"):  # it has every sequence
        variants += [(source, [INJECT, f"-DTERRACE_MUTANT_{m}=1"]) for m in MUTANTS]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = list(pool.map(lambda v: compile_one(v[0], root, out, v[1]), variants))
    library = out / "libterrace.so"
    run(PREFIX + "gcc", "-shared", "-o", library, *objects[: len(sources)], f"-Wl,--version-script={root}/src/shim/terrace.map",
        "-Wl,--no-undefined", "-Wl,-Bsymbolic", "-Wl,-z,nodelete")
    return library


def check_sequences(library: pathlib.Path) -> int:
    """The descriptors hold addresses as relative relocations; the text is read by address."""
    relocations = {int(m[1], 16): int(m[2], 16) for m in re.finditer(
        r"^([0-9a-f]+)\s+[0-9a-f]+\s+R_AARCH64_RELATIV\S*\s+([0-9a-f]+)", run(PREFIX + "readelf", "-rW", library), re.M)}
    section = re.search(r"\] __rseq_cs\s+PROGBITS\s+([0-9a-f]+) ([0-9a-f]+) ([0-9a-f]+)",
                        run(PREFIX + "readelf", "-SW", library))
    assert section, "no __rseq_cs section"
    address, offset, size = (int(x, 16) for x in section.groups())
    data = library.read_bytes()[offset:offset + size]
    text = {int(m[1], 16): (int(m[2], 16), m[3]) for m in re.finditer(
        r"^\s+([0-9a-f]+):\s+([0-9a-f]{8})\s+(.*)$", run(PREFIX + "objdump", "-d", library), re.M)}
    count = 0
    for at in range(0, size, 32):
        length = struct.unpack_from("<Q", data, at + 16)[0]
        start, abort = relocations[address + at + 8], relocations[address + at + 24]
        last = start + length - 4
        assert start in text and last in text, f"range of descriptor {at // 32} is not in the text"
        assert text[abort - 4][0] == SIGNATURE, f"no signature before the abort label at {abort:#x}"
        assert text[last][1].startswith("str"), f"the sequence at {start:#x} ends with {text[last][1]}"
        count += 1
    return count


def has_pages_of(size: str) -> bool:
    """QEMU 10 has the machine's pages alone."""
    done = subprocess.run(["qemu-aarch64", "-p", size, "/nowhere"], capture_output=True, text=True)
    return "cannot change host page size" not in done.stderr


def run_emulated(library: pathlib.Path, out: pathlib.Path) -> None:
    if shutil.which("qemu-aarch64") is None:
        print("qemu-aarch64 is not installed: compiled and inspected only")
        return
    (out / "program.c").write_text(PROGRAM)
    run(PREFIX + "gcc", "-O1", "-fno-builtin", out / "program.c", "-o", out / "program", "-pthread", library)
    sizes = ("4096", "16384", "65536")
    pages = [size for size in sizes if has_pages_of(size)]
    if len(pages) < len(sizes):
        print("not with other pages than the machine's, which this qemu-aarch64 does not have")
    for rung in ("getcpu", "thread"):
        for page in pages:
            run("qemu-aarch64", "-p", page, "-L", "/usr/aarch64-linux-gnu", "-E", f"LD_LIBRARY_PATH={out}", "-E", f"TERRACE_RUNG={rung}",
                out / "program", page)
            print(f"rung {rung}, pages of {page} bytes: runs under emulation")


def main() -> int:
    if shutil.which(PREFIX + "g++") is None:
        print("no cross compiler")
        return SKIP
    root = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as directory:
        out = pathlib.Path(directory)
        library = build(root, out)
        print(f"{check_sequences(library)} sequences end with their commit and have their signature")
        run_emulated(library, out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
