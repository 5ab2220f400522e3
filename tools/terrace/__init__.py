# SPDX-License-Identifier: MIT OR Apache-2.0
"""The `terrace` command: runs programs on Terrace, explains the machine, tests and measures."""

__version__ = "0.1.0"
