# SPDX-License-Identifier: MIT OR Apache-2.0
"""What JMH and Maven say is read rightly, raw numbers are kept, and the starter of programs does what it says."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "common"), str(HERE.parent / "peers")]

import contention
import jvm
import raw
import startup
from interleave import AGAIN, Rounds
from report import Report

STARTER = os.environ.get("TERRACE_BENCH_STARTUP", "")


def record(size: int, rate: float, **more: float) -> dict[str, object]:
    """As JMH writes it, what is not read left out."""
    return {
        "benchmark": f"terrace.bench.Allocation.bytes{size}", "measurementIterations": 3, "measurementTime": "500 ms",
        "primaryMetric": {"score": rate, "scoreError": "NaN"},
        "secondaryMetrics": {"gc.alloc.rate.norm": {"score": size + 0.001}}
        | {k.replace("_", "."): {"score": v} for k, v in more.items()},
    }


class Jmh(unittest.TestCase):
    def test_rates_are_millions_by_size(self) -> None:
        values = jvm.parse([record(16, 12.5e6), record(144, 3e6)])
        self.assertEqual((values["rate/16"], values["rate/144"]), (12.5, 3.0))
        self.assertAlmostEqual(values["bytes/144"], 144, places=2)

    def test_collections_are_a_part_of_the_measured_time(self) -> None:
        self.assertAlmostEqual(jvm.parse([record(48, 1.0, gc_time=15.0)])["collecting/48"], 0.01)

    def test_no_collection_is_no_time(self) -> None:
        self.assertEqual(jvm.parse([record(48, 1.0, gc_count=0.0)])["collecting/48"], 0)

    def test_an_unknown_unit_is_not_guessed(self) -> None:
        with self.assertRaises(KeyError):
            jvm.parse([record(16, 1.0) | {"measurementTime": "3 fortnights"}])


class Maven(unittest.TestCase):
    def build_with(self, mvn: str | None) -> str:
        """The reason that is given when `mvn` is this script."""
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory)
            (path / "javac").touch(mode=0o755)
            if mvn is not None:
                (path / "mvn").write_text(f"#!/bin/sh\n{mvn}\n")
                (path / "mvn").chmod(0o755)
            with mock.patch.dict(os.environ, PATH=directory), mock.patch.object(jvm, "BUILT", path / "built"), \
                    self.assertRaises(jvm.NotRun) as why:
                jvm.build()
        return str(why.exception)

    def test_its_absence_is_told(self) -> None:
        self.assertEqual(self.build_with(None), "there is no mvn")

    def test_its_first_error_is_told(self) -> None:
        self.assertEqual(self.build_with("echo '[WARNING] old'; echo '[ERROR] '; echo '[ERROR] no network'; echo '[ERROR] help'; "
                                         "exit 1"),
                         "mvn failed: no network")

    def test_a_silent_failure_is_one(self) -> None:
        self.assertEqual(self.build_with("exit 1"), "mvn failed: no reason given")

    def test_what_is_newer_than_its_sources_is_not_built_again(self) -> None:
        with tempfile.TemporaryDirectory() as directory, mock.patch.object(jvm, "BUILT", Path(directory)):
            self.assertFalse(jvm._is_built())
            for name in ("classes/terrace/bench/Allocation.class", "dependency/jmh-core-1.jar"):
                (Path(directory) / name).parent.mkdir(parents=True)
                (Path(directory) / name).touch()
            self.assertTrue(jvm._is_built())
            os.utime(Path(directory) / "classes/terrace/bench/Allocation.class", (1, 1))
            self.assertFalse(jvm._is_built())


class Raw(unittest.TestCase):
    RESULTS: Rounds = {"glibc": [{"a": 1.0}], "other": [{"a": 3.0}], AGAIN: [{"a": 2.0}]}

    def test_what_was_measured_is_there_for_the_next_report(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            options = argparse.Namespace(out=Path(directory), stored=False)
            self.assertEqual(raw.measured(options, "x", lambda: self.RESULTS), self.RESULTS)
            options.stored = True
            self.assertEqual(raw.measured(options, "x", self.fail), self.RESULTS)
            with self.assertRaises(SystemExit):
                raw.measured(options, "y", self.fail)

    def test_the_second_run_is_no_subject(self) -> None:
        self.assertEqual(raw.names(self.RESULTS), ["glibc", "other"])

    def test_what_is_added_is_taken_within_the_round(self) -> None:
        self.assertEqual(startup.added(self.RESULTS, "other", "a", "glibc"), [2.0])


class Report(unittest.TestCase):
    def test_stored_numbers_of_all_parts_make_a_page(self) -> None:
        native = {"1/16": {"cas": 3.0, "buffer": 10.0}, "4/16": {"cas": 1.0, "buffer": 31.0}}
        jmh = {f"{t}/{kind}": {"rate": 8.0 * t if kind == "TLAB" else 4.0 / t} for t in (1, 4) for kind in jvm.KINDS}
        with tempfile.TemporaryDirectory() as directory:
            options = argparse.Namespace(out=Path(directory), stored=True, smoke=True)
            sizes = [str(s) for s in contention.SIZES]
            self.keep(options.out, "contention", {
                f"{t}/{s}": dict.fromkeys((*contention.WAYS, "cas_retries"), 1.0) | native[f"{t}/16"] for t in (1, 4) for s in sizes})
            others = ("bytes", "collecting")
            self.keep(options.out, "jvm", {
                name: {f"rate/{s}": values["rate"] for s in sizes} | {f"{key}/{s}": 0.5 for s in sizes for key in others}
                for name, values in jmh.items()})
            page = Report("page", options.out, "A test")
            with mock.patch.object(page, "_console"), mock.patch.object(page, "panels"):
                contention.run(options, page)
                page.close()
            text = (options.out / "page.md").read_text()
        self.assertIn("one thread alone pays for the atomic instruction (article: 0.37 of the rate with a buffer, at 16 bytes): 0.30",
                      text)
        self.assertIn("shared pointer is slower than with one (article: 0.12 of its rate, at 16 bytes): 0.25", text)
        self.assertIn("agrees: JVM: buffers gain from threads (article: 1.78): 4.00", text)
        self.assertIn("| 4 threads, 144 bytes | 56.9 | 11.7 | 0.21 | 32.0 | 1.0 | 0.03", text)

    def keep(self, out: Path, name: str, values: dict[str, dict[str, float]]) -> None:
        (out / f"seeds-{name}.json").write_text(json.dumps({key: [row] for key, row in values.items()} | {AGAIN: []}))


@unittest.skipUnless(STARTER, "no program to try")
class Starter(unittest.TestCase):
    def start(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([STARTER, *arguments], capture_output=True, text=True, check=False, env=os.environ | {"COLOUR": "red"})

    def test_the_variables_given_replace_those_of_the_same_name(self) -> None:
        self.assertEqual(self.start("2", "COLOUR=blue", "sh", "-c", "test $COLOUR = blue").returncode, 0)
        self.assertEqual(self.start("2", "sh", "-c", "test $COLOUR = red").returncode, 0)

    def test_a_program_that_fails_is_not_measured(self) -> None:
        done = self.start("2", "false")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertNotEqual(self.start("2", "/nonexistent/program").returncode, 0)

    def test_output_of_the_program_is_not_mixed_with_the_result(self) -> None:
        self.assertRegex(self.start("3", "echo", "hello").stdout, r'^\{"wall_us": [0-9.]+, "cpu_us": [0-9.]+, "faults": [0-9]+\}\n$')


if __name__ == "__main__":
    unittest.main()
