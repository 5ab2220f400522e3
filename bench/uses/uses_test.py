# SPDX-License-Identifier: MIT OR Apache-2.0
"""Each load says its p99 or fails, and Terrace with a setting is no other allocator. Nothing is run."""

import argparse
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

BENCH = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(BENCH / folder) for folder in ("common", "apps", "peers")]

import databases
import uses
import web
import workers
from use import Done, Use
from workload import Failed

AB = "Complete requests:      32\nFailed requests:        0\n  98%      7\n  99%      8\n 100%      9 (longest request)\n"
SYSBENCH = "    total number of events:              200\nLatency (ms):\n         99th percentile:                       12.52\n"
REDIS = "1000 " * 2 + "latency_percentiles_usec_set:p50=1.0,p99=2.0\nlatency_percentiles_usec_evalsha:p50=900.1,p99=2500.5,p99.9=3000.0\n"
ONE = {"drained": 2.0, "requests": 10, "cpu": 1.0}


class Loads(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))

    def loaded(self, use: Use, module: object, said: str) -> Done:
        with mock.patch.object(module, "load", return_value=said), mock.patch.object(databases, "ran"):
            return use.load(self.folder, 0.001)

    def test_ab_says_it(self) -> None:
        (self.folder / "port").write_text("1")
        self.assertEqual(self.loaded(web.USES[0], web, AB), Done(32, 8))
        for wrong in (AB.replace("99%", "98%"), AB.replace("32", "31"), AB + "Non-2xx responses: 1\n"):
            with self.assertRaises(Failed):
                self.loaded(web.USES[0], web, wrong)

    def test_sysbench_says_it(self) -> None:
        self.assertEqual(self.loaded(databases.USES[0], databases, SYSBENCH), Done(200, 12.52))
        for wrong in (SYSBENCH.replace("99th", "95th"), SYSBENCH.replace("12.52", "0.00"), SYSBENCH.replace("200", "199")):
            with self.assertRaises(Failed):
                self.loaded(databases.USES[0], databases, wrong)

    def test_of_pgbench_s_transactions_those_with_statements_count(self) -> None:
        log = "".join(f"{client} 1 {client * 1000} 0 1700000000 1\n{client} 2 5 0 1700000000 2\n" for client in range(databases.HELD))
        (self.folder / "pgbench.1").write_text(log + "0 3 1")  # the rest is in pgbench's buffer
        self.assertEqual(databases._p99(self.folder, 1), 59)
        (self.folder / "pgbench.1").write_text(log[:-40])
        with self.assertRaises(Failed):
            databases._p99(self.folder, 1)

    def test_redis_says_it_of_calls_of_scripts(self) -> None:
        with mock.patch.object(databases, "KEYS", 1000):
            said = REDIS.replace("1000 1000", "1000", 1)
            self.assertEqual(self.loaded(databases.USES[2], databases, said), Done(6000, 2.5005))
            with self.assertRaises(Failed):
                self.loaded(databases.USES[2], databases, said.replace("evalsha", "eval"))

    def test_programs_say_it_beside_the_count(self) -> None:
        loaded = self.folder / "loaded"
        loaded.write_text("8 1.5")
        self.assertEqual(workers.USES[0].load(self.folder, 0.001), Done(8, 1.5))
        for wrong in ("8", "8 0.0", "7 1.5"):
            loaded.write_text(wrong)
            (self.folder / "log").touch()
            with self.assertRaises(Failed):
                workers.USES[0].load(self.folder, 0.001)


class Tables(unittest.TestCase):
    def test_a_setting_is_tried_on_glibc_and_on_terrace(self) -> None:
        options = argparse.Namespace(library=Path(__file__), allocator=None)
        found = {one.name: one.environment for one in uses.allocators(options, uses.USES["jvm-native"])}
        setting = workers.USES[0].settings["trimmed by the JVM"]
        self.assertEqual(found["glibc, trimmed by the JVM"], setting)
        self.assertEqual(found["terrace, trimmed by the JVM"], found["terrace"] | setting)

    def test_terrace_with_a_setting_is_no_other_allocator(self) -> None:
        runs = {name: [ONE | {"drained": size * 2**20}] for name, size in (("glibc", 9), ("jemalloc", 4), ("terrace", 6), ("terrace, less", 2))}
        self.assertEqual(uses.overview(runs)[:4], ["6", "9", "4 jemalloc", "1.50"])


if __name__ == "__main__":
    unittest.main()
