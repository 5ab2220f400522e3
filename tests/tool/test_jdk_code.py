# SPDX-License-Identifier: MIT OR Apache-2.0
"""`terrace jdk test --suite code` tells an instruction that is not the stock JVM's."""

import platform
import shutil

import pytest

from terrace.jdk.code import difference, instructions, pieces

PRINTED = """\
Compiled method (c2) 45    5             Code::makeInstance (8 bytes)
[MachCode]
[Verified Entry Point]
  # {method} {0x00007fba8f4002e0} 'makeInstance' '()Ljava/lang/Object;' in 'Code'
  0x00007fba83ec7a80: 498b 87c8 | 0100 004c

  0x00007fba83ec7a88: ;   {metadata('Code$Small')}
  0x00007fba83ec7a88: 8bd0 c3
[/MachCode]
  0x00007fba83ec7a90: 9090
nop  0 nop  [0x00007fba83950f20, 0x00007fba839510c8]  424 bytes
[MachCode]
  0x00007fba83950f20: 9090
[/MachCode]
"""
CODE = bytes.fromhex("498b87c80100004c8bd0c3")


def test_only_the_bytes_of_what_creates_objects():
    assert pieces(PRINTED) == {"Code::makeInstance": CODE}


@pytest.mark.skipif(
    platform.machine() != "x86_64" or not shutil.which("objdump"), reason="reads x86-64's code"
)
def test_numbers_may_differ_and_instructions_not():
    stock = instructions(CODE)
    assert len(stock) == 3
    elsewhere = bytes.fromhex("498b87d80100004c8bd0c3")
    assert difference(stock, instructions(elsewhere)) == ""
    assert difference(stock, instructions(CODE[:7] + b"\x90" + CODE[7:])).startswith(
        "instruction 1 is 'nop'"
    )
    assert difference(stock, instructions(CODE + b"\x90")) == "4 instructions, not 3"
