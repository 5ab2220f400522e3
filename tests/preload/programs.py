# SPDX-License-Identifier: MIT OR Apache-2.0
"""The real programs: what is run, on what input, and what of its output must be the same with and without the library."""

import pathlib
import re
import shutil
import socket
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from typing import Callable

from program_inputs import NODE, PERL, PHP, SQL, fresh_history, write_history, write_sources


@dataclass
class Program:
    name: str
    needs: list[str]                          # commands; without them the program is skipped
    command: Callable[[pathlib.Path], list[str]]   # from the scratch directory
    prepare: Callable[[pathlib.Path], None] = lambda scratch: None
    artefacts: tuple[str, ...] = ()           # files that must be identical, too
    normalise: Callable[[str], str] = lambda text: text
    repeat: Callable[[pathlib.Path], None] = lambda scratch: None   # before each run


def sh(script: str) -> list[str]:
    return ["bash", "-c", script]


# ---- inputs of one program only

def write_java(scratch: pathlib.Path) -> None:
    (scratch / "Heap.java").write_text(textwrap.dedent("""
        import java.util.*;
        import java.util.concurrent.*;
        public class Heap {
          public static void main(String[] a) throws Exception {
            ExecutorService pool = Executors.newFixedThreadPool(8);
            List<Future<Integer>> all = new ArrayList<>();
            for (int t = 0; t < 8; t++) {
              final int seed = t;
              all.add(pool.submit(() -> {
                Random r = new Random(seed);
                Map<Integer, byte[]> m = new HashMap<>();
                for (int i = 0; i < 200000; i++) m.put(r.nextInt(20000), new byte[r.nextInt(500)]);
                return m.size();
              }));
            }
            int sum = 0;
            for (Future<Integer> f : all) sum += f.get();
            pool.shutdown();
            System.out.println(sum);
          }
        }
        """))
    subprocess.run(["javac", "Heap.java"], cwd=scratch, check=True)


def write_configure(scratch: pathlib.Path) -> None:
    """A configure script as autoconf writes them: some hundred checks, each a here-document, a compiler run or a function call."""
    checks = "\n".join(f"check_header {h}" for h in
                       ["stdio.h", "stdlib.h", "string.h", "unistd.h", "pthread.h", "sys/mman.h", "no/such.h", "netdb.h"] * 4)
    (scratch / "configure").write_text(textwrap.dedent("""\
        #!/bin/bash
        : ${CC=cc}
        exec 5>config.log
        lineno() { sed -n "$1"'p' "$0" >&5; }
        check_header() {
          echo "checking for $1... "
          cat > conftest.c <<END
        #include <$1>
        int main(void) { return 0; }
        END
          var=have_$(echo "$1" | tr 'a-z/.' 'A-Z__')
          if $CC -c conftest.c >&5 2>&5; then eval "$var=yes"; else eval "$var=no"; fi
          eval "echo \\"result: \\$$var\\""
          defs="$defs$(printf '#define %s 1\\n' "$var")"
        }
        defs=
        for i in $(seq 1 3000); do
          x="$x $i"; case $i in *7) x=${x# *};; esac
          eval "v_$i=\\"\\$x\\""
        done
        """) + checks + '\nfor i in $(seq 1 200); do lineno $i; s=$(echo "$i" | sed "s/1/one/g"); echo "$s"; done\nrm -f conftest.*\n')


PYTHON_TESTS = ["test_json", "test_re", "test_threading", "test_subprocess", "test_list", "test_dict", "test_bytes", "test_fork1",
                "test_array", "test_collections", "test_queue", "test_zlib", "test_struct", "test_memoryview"]


def python_with_tests() -> str:
    for python in ("/usr/bin/python3", sys.executable, "python3"):
        if shutil.which(python) and subprocess.run([python, "-c", "import test.test_json"], capture_output=True).returncode == 0:
            return python
    return ""


def only_verdicts(text: str) -> str:
    """Of regrtest's output what does not depend on time and order: which tests ran and how they ended."""
    kept = [line for line in text.splitlines() if re.match(r"(All \d+ tests OK|\d+ tests? (OK|failed|skipped)|Tests? result: )", line)]
    return "\n".join(kept) or text


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def redis_script(scratch: pathlib.Path) -> list[str]:
    port = free_port()
    return sh(f"""cd {scratch} && redis-server --port {port} --bind 127.0.0.1 --save '' --appendonly no --daemonize no > redis.log 2>&1 &
        server=$!
        for i in $(seq 100); do redis-cli -p {port} ping 2>/dev/null | grep -q PONG && break; sleep 0.05; done
        redis-benchmark -p {port} -q -n 60000 -c 20 -P 8 -r 20000 -d 100 -t set,get,lpush,lrange_100,hset,sadd > bench.out || exit 1
        redis-cli -p {port} dbsize | grep -qE '[0-9]+' || exit 1
        for i in $(seq 200); do echo "set fixed$i value$i"; done | redis-cli -p {port} | sort | uniq -c
        redis-cli -p {port} get fixed77
        redis-cli -p {port} shutdown nosave; wait $server; echo "server ended with $?" """)


PROGRAMS = [
    Program("python", ["python3"], lambda s: [python_with_tests() or "python3", "-m", "test", "-j2", *PYTHON_TESTS],
            normalise=only_verdicts),
    Program("gcc", ["g++"], lambda s: ["g++", "-std=c++17", "-O1", "-g", "-c", "large.cpp", "-o", "large.o"],
            lambda s: write_sources(s, 30),
            artefacts=("large.o",)),
    Program("git", ["git"], lambda s: sh("git -C gc.git gc --quiet --aggressive && git -C gc.git fsck 2>&1 && git -C gc.git rev-list --all | wc -l"),
            lambda s: write_history(s, 1500), repeat=fresh_history),
    Program("perl", ["perl"], lambda s: ["perl", "-e", PERL]),
    # Its extensions are opened with RTLD_DEEPBIND; without that variable it has blocks of its own.
    Program("php", ["php"], lambda s: ["env", "USE_ZEND_ALLOC=0", "php", "-r", PHP]),
    Program("node", ["node"], lambda s: ["node", "-e", NODE]),
    Program("java", ["javac", "java"], lambda s: ["java", "-Xmx256m", "-cp", ".", "Heap"], write_java),
    Program("sqlite3", ["sqlite3"], lambda s: ["sqlite3", ":memory:", SQL]),
    Program("redis", ["redis-server", "redis-benchmark", "redis-cli"], redis_script),
    Program("bash", ["bash", "cc"], lambda s: ["bash", "configure"], write_configure),
]
