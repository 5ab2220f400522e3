# SPDX-License-Identifier: MIT OR Apache-2.0
"""Blocks that the library has sampled, with the stacks that have allocated them.

table.py                 the samples, as the library keeps them
images.py, symbolizer.py from addresses to functions and lines; stacks that were copied are unwound
known_stacks.py          each is unwound once
stacks.py                both together
leaks.py                 for findleaks
"""
