# SPDX-License-Identifier: MIT OR Apache-2.0
"""tools/count_fastpath.py on disassembly written by hand."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))

import count_fastpath

GOOD = """
Disassembly of section .text:

000000000000faf0 <malloc>:
    faf0:\tendbr64
    faf4:\tcmp    0x1ddc9(%rip),%rdi        # 2d8c0 <fast_path>
    fafb:\tjae    fb60 <malloc+0x70>
    fafd:\tlea    0xf(%rdi),%rcx
    fb01:\tnopw   0x0(%rax,%rax,1)
    fb06:\tret
    fb60:\tmov    %rdi,%rax
    fb63:\tje     fb70 <malloc+0x80>
    fb65:\tinc    %rax
    fb68:\tret
    fb70:\tjmp    3087 <allocate_slow>
"""


def planted(instruction: str) -> count_fastpath.Function:
    return count_fastpath.analyse("malloc", GOOD.replace("lea    0xf(%rdi),%rcx", instruction))


class CountFastPath(unittest.TestCase):
    def test_the_longest_way_to_a_ret_counts_without_padding_and_cold_exits(self) -> None:
        found = count_fastpath.analyse("malloc", GOOD)
        self.assertEqual(sorted(len(p) for p in found.paths), [4, 6])
        self.assertEqual(found.longest[-2], "inc    %rax")
        self.assertEqual(found.errors(), [])

    def test_other_functions_do_not_count(self) -> None:
        self.assertEqual(count_fastpath.analyse("free", GOOD).errors(), ["free: no ret found"])

    def test_finds_atomic_instructions(self) -> None:
        self.assertIn("atomic", planted("lock incq (%rax)").errors()[0])
        self.assertIn("atomic", planted("xchg   %rax,(%rdi)").errors()[0])
        self.assertEqual(planted("xchg   %ax,%ax").errors(), [])

    def test_finds_calls(self) -> None:
        self.assertIn("call", planted("call   3087 <somewhere>").errors()[0])

    def test_a_loop_ends(self) -> None:
        self.assertEqual(len(planted("jne    faf4 <malloc+0x4>").paths), 2)


if __name__ == "__main__":
    unittest.main()
