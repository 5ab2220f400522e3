# SPDX-License-Identifier: MIT OR Apache-2.0
"""What all commands have in common."""

import os
import subprocess
import sys

from conftest import MAIN


def test_a_reader_that_ends_early_is_no_fault_of_the_tool():
    reads, writes = os.pipe()
    os.close(reads)
    done = subprocess.run(
        [sys.executable, "-I", MAIN, "fuzz"], stdout=writes, stderr=subprocess.PIPE, check=False
    )
    os.close(writes)
    assert (done.returncode, done.stderr) == (141, b"")  # as of a program that SIGPIPE ends
