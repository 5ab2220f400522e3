# SPDX-License-Identifier: MIT OR Apache-2.0
"""Loads and stores of instructions, from objdump's text and from bytes."""

from __future__ import annotations

import shutil
import unittest

from accesses import REGISTERS, Access, aborts, accesses, disassembled, parsed

STATE = {name: 0x1000 * (n + 1) for n, name in enumerate(REGISTERS)}
AT = 0x500000


def found(text: str, **changed: int) -> list[tuple[str, int, int]]:
    return [("w" if a.write else "r", a.address, a.bytes) for a in accesses(parsed(text, 7), AT, STATE | changed)]


class Operands(unittest.TestCase):
    def test_a_store_is_not_a_load(self) -> None:
        self.assertEqual(found("mov    %r10,%fs:(%rdx)"), [("w", STATE["fs"] + STATE["rdx"], 8)])
        self.assertEqual(found("movl   $0x0,0x8(%rax)"), [("w", STATE["rax"] + 8, 4)])
        self.assertEqual(found("setne  (%rcx)")[0][:2], ("w", STATE["rcx"]))

    def test_a_load_is_not_a_store(self) -> None:
        self.assertEqual(found("mov    -0x10(%rsi,%r8,8),%r9"), [("r", STATE["rsi"] + 8 * STATE["r8"] - 16, 8)])
        self.assertEqual([kind for kind, *_ in found("cmp    %rax,0x8(%rdi)")], ["r"])
        self.assertEqual([kind for kind, *_ in found("cmpb   $0x0,(%rdi)")], ["r"])
        self.assertEqual([kind for kind, *_ in found("imul   0x8(%rdi),%rax")], ["r"])
        self.assertEqual([kind for kind, *_ in found("divq   (%rdi)")], ["r"])

    def test_read_modify_write_is_both(self) -> None:
        for text in ("incq   (%rax)", "add    %rcx,(%rax)", "lock cmpxchg %rdx,(%rax)", "xchg   (%rax),%rdx", "lock xadd %eax,(%rax)",
                     "shlq   (%rax)"):
            self.assertEqual([kind for kind, *_ in found(text)], ["r", "w"], text)

    def test_no_access(self) -> None:
        for text in ("lea    0x10(%rax),%rdx", "nopw   0x0(%rax,%rax,1)", "prefetcht0 (%rax)", "mov    %rax,%rdx",
                     "jne    402b <f+0x2>", "shl    $0x8,%rax", "endbr64"):
            self.assertEqual(found(text), [], text)

    def test_stack(self) -> None:
        self.assertEqual(found("push   %rbx"), [("w", STATE["rsp"] - 8, 8)])
        self.assertEqual(found("call   500100 <f>"), [("w", STATE["rsp"] - 8, 8)])
        self.assertEqual(found("ret"), [("r", STATE["rsp"], 8)])
        self.assertEqual(found("call   *0x18(%rbx)"), [("r", STATE["rbx"] + 0x18, 8), ("w", STATE["rsp"] - 8, 8)])

    def test_relative_to_the_next_instruction(self) -> None:
        self.assertEqual(found("mov    0x1e235(%rip),%rax        # 0x1e23c"), [("r", AT + 7 + 0x1E235, 8)])

    def test_strings(self) -> None:
        self.assertEqual(found("rep stos %rax,%es:(%rdi)", rcx=3), [("w", STATE["rdi"], 8)])
        self.assertEqual(found("rep stos %rax,%es:(%rdi)", rcx=0), [])
        self.assertEqual([kind for kind, *_ in found("rep movsb %ds:(%rsi),%es:(%rdi)", rcx=1)], ["r", "w"])

    def test_vectors(self) -> None:
        self.assertEqual(found("vmovdqu %ymm0,(%rdi)"), [("w", STATE["rdi"], 32)])
        self.assertEqual(found("movups %xmm0,0x10(%rax)"), [("w", STATE["rax"] + 16, 16)])
        self.assertEqual(found("movhps %xmm0,(%rax)"), [("w", STATE["rax"], 8)])

    def test_widths(self) -> None:
        for text, size in (("mov    %al,(%rdi)", 1), ("mov    %r8b,(%rdi)", 1), ("mov    %ax,(%rdi)", 2), ("mov    %r10d,(%rdi)", 4),
                           ("mov    %eax,(%rdi)", 4), ("mov    %r10,(%rdi)", 8), ("movzbl (%rdi),%eax", 1), ("movslq (%rdi),%rax", 4)):
            self.assertEqual(found(text)[0][2], size, text)

    def test_lines(self) -> None:
        self.assertEqual(list(Access(60, 8, True).lines()), [0, 1])
        self.assertEqual(list(Access(64, 64, True).lines()), [1])

    def test_system_calls_abort(self) -> None:
        self.assertTrue(aborts(parsed("syscall", 2)))
        self.assertFalse(aborts(parsed("mov    %rax,%rdx", 3)))


@unittest.skipUnless(shutil.which("objdump"), "no objdump")
class Bytes(unittest.TestCase):
    def test_what_follows_does_not_matter(self) -> None:
        store, following = bytes.fromhex("64448912"), bytes.fromhex("48b8efcdab89674523")  # mov %r10d,%fs:(%rdx), a cut movabs
        code = {AT: (store + following + b"\x48\xb8").ljust(15, b"\x0f"), AT + 4: b"\xc3" + b"\x66" * 14}
        at = disassembled(code)
        self.assertEqual((at[AT].mnemonic, at[AT].length), ("mov", 4))
        self.assertEqual(accesses(at[AT], AT, STATE), [Access(STATE["fs"] + STATE["rdx"], 4, True)])
        self.assertEqual((at[AT + 4].mnemonic, at[AT + 4].length), ("ret", 1))


if __name__ == "__main__":
    unittest.main()
