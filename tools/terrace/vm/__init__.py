# SPDX-License-Identifier: MIT OR Apache-2.0
"""`terrace test vm`: the tests in guests of other kernels and machines, emulated by QEMU.

command.py                     one guest after the other
rows.py                        which guests there are
archive.py, images.py, build.py    kernels, root files and programs of a guest
tests.py, batches.py           what runs there
qemu.py, results.py, page.py   a run, what its console said, docs/guide/kernels.md
"""
