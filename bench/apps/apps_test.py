# SPDX-License-Identifier: MIT OR Apache-2.0
"""Tests of the real programs: what their output is read for, and that a workload notices a program that went wrong.

The cheapest workloads run once on glibc; no time is looked at.
"""

import argparse
import sys
import tempfile
import unittest
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / folder) for folder in ("common",)]

import workloads
from bindings import servers, watched
from interleave import Subject, glibc, preloaded
from recipe import Recipe, find, refuse_unloaded, workload
from redis_load import before_jemalloc
from said import compiler_command, pgbench_seconds, redis_seconds, without_times
from server import Service, serving
from workload import Failed

REDIS = '"test","rps","avg_latency_ms"\n"SET","20000.00","0.1"\n"GET","40000.00","0.1"\n'
PGBENCH = """number of transactions actually processed: 400/400
number of failed transactions: 0 (0.000%)
tps = 200.000000 (without initial connection time)
"""
DRIVER = 'Using built-in specs.\n "/usr/libexec/cc1plus" "-quiet" "-D" "A=b c" "large.cpp"\n as -o large.o\n'
STORE = """fillrandom   :       1.9 micros/op 521648 ops/sec 0.019 seconds 10000 operations;
readrandom   :       2.1 micros/op 1630523 ops/sec 0.025 seconds 40000 operations;    6.8 MB/s (203 of 10000 found)
"""
BINDINGS = """1: binding file /usr/bin/x [0] to /lib/libterrace.so.0 [0]: normal symbol `malloc' [GLIBC_2.2.5]
1: binding file /usr/bin/x [0] to /lib/libc.so.6 [0]: normal symbol `free' [GLIBC_2.2.5]
1: binding file /lib/liby.so [0] to /usr/bin/x [0]: normal symbol `free' [GLIBC_2.2.5]
1: binding file /usr/bin/x [0] to /lib/libc.so.6 [0]: normal symbol `strlen' [GLIBC_2.2.5]
"""
CHEAP = ("perl-objects", "lua-strings", "sqlite-file")
CHEAPEST_SERVER = "redis-lists"


class WhatProgramsSay(unittest.TestCase):
    def test_redis_benchmark_s_rates_become_the_time_of_all_tests(self) -> None:
        self.assertAlmostEqual(redis_seconds(REDIS, 2, 10_000), 0.75)

    def test_a_test_that_redis_benchmark_left_out_is_noticed(self) -> None:
        for text, tests in ((REDIS, 3), ("", 1), ('"SET","0.00"\n', 1), ('"SET","error"\n', 1)):
            with self.assertRaises(Failed):
                redis_seconds(text, tests, 10_000)

    def test_pgbench_s_rate_becomes_a_time(self) -> None:
        self.assertAlmostEqual(pgbench_seconds(PGBENCH, 400), 2.0)

    def test_transactions_that_pgbench_did_not_do_are_noticed(self) -> None:
        for wrong in (PGBENCH.replace("400/400", "399/400"), PGBENCH.replace(": 0 (", ": 3 ("), PGBENCH.replace("tps", "ops")):
            with self.assertRaises(Failed):
                pgbench_seconds(wrong, 400)

    def test_the_compiler_proper_is_found_with_its_quoted_arguments(self) -> None:
        self.assertEqual(compiler_command(DRIVER, "/cc1plus"), ["/usr/libexec/cc1plus", "-quiet", "-D", "A=b c", "large.cpp"])
        with self.assertRaises(Failed):
            compiler_command(DRIVER, "/cc1")

    def test_db_bench_without_its_times_still_says_what_was_found(self) -> None:
        self.assertEqual(without_times(STORE), "fillrandom \nreadrandom (203 of 10000 found)")

    def test_an_object_that_was_not_loaded_is_noticed(self) -> None:
        refuse_unloaded("a warning\n")
        with self.assertRaises(Failed):
            refuse_unloaded("ERROR: ld.so: object 'x.so' from LD_PRELOAD cannot be preloaded (wrong ELF class): ignored.\n")

    def test_libc_comes_after_the_allocator_and_before_redis_s_own(self) -> None:
        self.assertEqual(before_jemalloc(Subject("x", {"LD_PRELOAD": "/a.so"})).environment["LD_PRELOAD"], "/a.so:libc.so.6")
        self.assertEqual(before_jemalloc(glibc()).environment["LD_PRELOAD"], "libc.so.6")

    def test_objects_are_collected_by_symbol(self) -> None:
        found = {symbol: objects for symbol, objects in servers(BINDINGS.splitlines()).items() if objects}
        self.assertEqual(found, {"malloc": {"libterrace.so.0"}, "free": {"libc.so.6", "x"}})


class WithPrograms(unittest.TestCase):
    """Programs that run; `build` has the launcher."""

    build: Path

    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.scratch = Path(directory.name)

    def _shell(self, script: str, **more: object) -> Recipe:
        return Recipe("shell", lambda _: ["sh", "-c", script], "^right", **more)  # type: ignore[arg-type]

    def test_output_that_differs_is_a_failure(self) -> None:
        one = workload(self.build, self._shell('echo "right $DIFFERENT"'))
        one.prepare(self.scratch)
        self.assertGreater(one.measure(glibc(), self.scratch)["peak_rss"], 0)
        with self.assertRaises(Failed):
            one.measure(Subject("x", {"DIFFERENT": "1"}), self.scratch)

    def test_a_file_that_differs_or_is_not_written_is_a_failure(self) -> None:
        one = workload(self.build, self._shell('echo right; [ "$NOTHING" ] || echo "$DIFFERENT" > file', artefacts=("file",)))
        one.prepare(self.scratch)
        one.measure(glibc(), self.scratch)
        for environment in ({"DIFFERENT": "1"}, {"NOTHING": "1"}):
            with self.assertRaises(Failed):
                one.measure(Subject("x", environment), self.scratch)

    def test_a_wrong_reference_or_status_is_a_failure(self) -> None:
        for script in ("echo wrong", "echo right; exit 3"):
            with self.assertRaises(Failed):
                workload(self.build, self._shell(script)).prepare(self.scratch)

    def test_an_object_that_is_not_there_is_a_failure(self) -> None:
        one = workload(self.build, self._shell("echo right"))
        one.prepare(self.scratch)
        with self.assertRaises(Failed):
            one.measure(Subject("x", {"LD_PRELOAD": "/nowhere/at-all.so"}), self.scratch)

    def test_a_server_that_ends_before_it_answers_is_a_failure(self) -> None:
        service = Service(["sh", "-c", "echo no >&2; exit 1"], self.scratch, lambda: False)
        with self.assertRaisesRegex(Failed, "does not answer: no"), serving(self.build, glibc(), service):
            self.fail("it does not serve")

    def test_a_server_s_status_counts(self) -> None:
        script = "trap 'exit 4' TERM; : > ready; while :; do sleep 0.05; done"
        service = Service(["sh", "-c", script], self.scratch, (self.scratch / "ready").exists)
        with serving(self.build, glibc(), service) as server, self.assertRaisesRegex(Failed, "ended with 4"):
            server.stop()

    def test_the_cheapest_workloads_run(self) -> None:
        present = {one.name: one for one in workloads.workloads(self.build)}
        cheap = [present[name] for name in CHEAP if name in present][:1]
        cheap += [present[CHEAPEST_SERVER]] if CHEAPEST_SERVER in present else []
        for one in cheap:
            with self.subTest(one.name):
                one.prepare(self.scratch)
                values = one.measure(glibc(), self.scratch)
                self.assertTrue(all(values[key] > 0 for key in ("seconds", "cpu_seconds", "peak_rss", "faults")))
        if not cheap:
            self.skipTest(", ".join(workloads.missing()))

    def test_malloc_is_the_preloaded_object_s(self) -> None:
        library = (self.build / "libterrace.so").resolve()
        one = workload(self.build, Recipe("sort", lambda _: ["sort", "--version"], "sort", ("sort",)))
        if not library.exists():
            self.skipTest("no libterrace.so")
        one.prepare(self.scratch)
        found = watched(one, preloaded("terrace", library), self.scratch)
        self.assertEqual(found["malloc"] | found["free"], {library.name})
        self.assertFalse(any(name.startswith("libterrace") for name in watched(one, glibc(), self.scratch)["malloc"]))

    def test_what_is_missing_and_what_is_there_are_everything(self) -> None:
        names = {one.name for one in workloads.workloads(self.build)}
        absent = {line.partition(":")[0] for line in workloads.missing()}
        self.assertFalse(names & absent)
        self.assertEqual(find("no-such-program-at-all"), None)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=Path, required=True)
    WithPrograms.build = parser.parse_args().build.resolve()
    unittest.main(argv=sys.argv[:1])
