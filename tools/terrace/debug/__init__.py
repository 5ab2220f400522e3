# SPDX-License-Identifier: MIT OR Apache-2.0
"""The heap of another process or of a core file, read from outside by the library's descriptors.

memory.py, live.py, core.py   where bytes come from; copying.py: many of them at once
ptrace.py, waiting.py         one moment of a process: its threads stopped, or all waiting
layout.py                     what the library says of itself: src/introspect/descriptors.h
window.py, classes.py, heap.py  blocks, and where each lies
slots.py, magazines.py        which of them are free
roots.py, reach.py            what a program can still reach
sampled/                      blocks whose stacks are known
findleaks.py, ...             a command each
"""
