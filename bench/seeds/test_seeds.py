# SPDX-License-Identifier: MIT OR Apache-2.0
"""What JMH and Maven say is read rightly, raw numbers are kept, the starter of programs does what it says, and instructions touch
what they touch."""

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
import startup
from accesses import REGISTERS, Access, aborts, accesses, disassembled
from interleave import AGAIN, Rounds, measured, names
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
            self.assertEqual(measured(options, "x", lambda: self.RESULTS), self.RESULTS)
            options.stored = True
            self.assertEqual(measured(options, "x", self.fail), self.RESULTS)
            with self.assertRaises(SystemExit):
                measured(options, "y", self.fail)

    def test_the_second_run_is_no_subject(self) -> None:
        self.assertEqual(names(self.RESULTS), ["glibc", "other"])

    def test_what_is_added_is_taken_within_the_round(self) -> None:
        self.assertEqual(startup.added(self.RESULTS, "other", "a", "glibc"), [2.0])


class Pages(unittest.TestCase):
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


AT = 0x500000
S = {name: 0x1000 * (n + 1) for n, name in enumerate(REGISTERS)}  # what the registers hold
INSTRUCTIONS = (
    ("mov %r10,%fs:(%rdx)", "644c8912", [("w", S["fs"] + S["rdx"], 8)]),
    ("movl $0x0,0x8(%rax)", "c7400800000000", [("w", S["rax"] + 8, 4)]),
    ("setne (%rcx)", "0f9501", [("w", S["rcx"], 1)]),
    ("mov -0x10(%rsi,%r8,8),%r9", "4e8b4cc6f0", [("r", S["rsi"] + 8 * S["r8"] - 16, 8)]),
    ("cmp %rax,0x8(%rdi)", "48394708", [("r", S["rdi"] + 8, 8)]),
    ("cmpb $0x0,(%rdi)", "803f00", [("r", S["rdi"], 1)]),
    ("imul 0x8(%rdi),%rax", "480faf4708", [("r", S["rdi"] + 8, 8)]),
    ("divq (%rdi)", "48f737", [("r", S["rdi"], 8)]),
    ("incq (%rax)", "48ff00", [("r", S["rax"], 8), ("w", S["rax"], 8)]),
    ("add %rcx,(%rax)", "480108", [("r", S["rax"], 8), ("w", S["rax"], 8)]),
    ("lock cmpxchg %rdx,(%rax)", "f0480fb110", [("r", S["rax"], 8), ("w", S["rax"], 8)]),
    ("xchg (%rax),%rdx", "488710", [("r", S["rax"], 8), ("w", S["rax"], 8)]),
    ("lock xadd %eax,(%rax)", "f00fc100", [("r", S["rax"], 4), ("w", S["rax"], 4)]),
    ("shlq (%rax)", "48d120", [("r", S["rax"], 8), ("w", S["rax"], 8)]),
    ("lea 0x10(%rax),%rdx", "488d5010", []),
    ("nopw 0x0(%rax,%rax,1)", "660f1f0400", []),
    ("prefetcht0 (%rax)", "0f1808", []),
    ("mov %rax,%rdx", "4889c2", []),
    ("jne .", "75fe", []),
    ("shl $0x8,%rax", "48c1e008", []),
    ("endbr64", "f30f1efa", []),
    ("push %rbx", "53", [("w", S["rsp"] - 8, 8)]),
    ("pop %rax", "58", [("r", S["rsp"], 8)]),
    ("leave", "c9", [("r", S["rbp"], 8)]),
    ("call .", "e8fbffffff", [("w", S["rsp"] - 8, 8)]),
    ("ret", "c3", [("r", S["rsp"], 8)]),
    ("call *0x18(%rbx)", "ff5318", [("r", S["rbx"] + 0x18, 8), ("w", S["rsp"] - 8, 8)]),
    ("mov 0x1e235(%rip),%rax", "488b0535e20100", [("r", AT + 7 + 0x1E235, 8)]),
    ("rep stos %rax,%es:(%rdi)", "f348ab", [("w", S["rdi"], 8)]),
    ("rep movsb %ds:(%rsi),%es:(%rdi)", "f3a4", [("r", S["rsi"], 1), ("w", S["rdi"], 1)]),
    ("vmovdqu %ymm0,(%rdi)", "c5fe7f07", [("w", S["rdi"], 32)]),
    ("movups %xmm0,0x10(%rax)", "0f114010", [("w", S["rax"] + 16, 16)]),
    ("movhps %xmm0,(%rax)", "0f1700", [("w", S["rax"], 8)]),
    ("mov %r8b,(%rdi)", "448807", [("w", S["rdi"], 1)]),
    ("mov %ax,(%rdi)", "668907", [("w", S["rdi"], 2)]),
    ("mov %r10d,(%rdi)", "448917", [("w", S["rdi"], 4)]),
    ("movzbl (%rdi),%eax", "0fb607", [("r", S["rdi"], 1)]),
    ("movslq (%rdi),%rax", "486307", [("r", S["rdi"], 4)]),
)


class Accesses(unittest.TestCase):
    def test_what_an_instruction_reads_and_writes(self) -> None:
        for text, code, expected in INSTRUCTIONS:
            with self.subTest(text):
                instruction = disassembled({AT: bytes.fromhex(code)})[AT]
                self.assertEqual([("w" if a.write else "r", a.address, a.bytes) for a in accesses(instruction, S)], expected)
                self.assertEqual(instruction.len, len(code) // 2)

    def test_a_string_instruction_that_has_done_all_does_nothing(self) -> None:
        instruction = disassembled({AT: bytes.fromhex("f348ab")})[AT]
        self.assertEqual(accesses(instruction, S | {"rcx": 0}), [])

    def test_what_follows_does_not_matter(self) -> None:
        store, following = bytes.fromhex("64448912"), bytes.fromhex("48b8efcdab8967452348b8")  # mov %r10d,%fs:(%rdx), a cut movabs
        self.assertEqual(accesses(disassembled({AT: store + following})[AT], S), [Access(S["fs"] + S["rdx"], 4, True)])

    def test_lines(self) -> None:
        self.assertEqual(list(Access(60, 8, True).lines()), [0, 1])
        self.assertEqual(list(Access(64, 64, True).lines()), [1])

    def test_system_calls_abort(self) -> None:
        self.assertTrue(aborts(disassembled({AT: b"\x0f\x05"})[AT]))
        self.assertFalse(aborts(disassembled({AT: b"\xc3"})[AT]))


if __name__ == "__main__":
    unittest.main()
