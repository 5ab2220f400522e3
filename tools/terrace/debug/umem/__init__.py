# SPDX-License-Identifier: MIT OR Apache-2.0
"""Object caches and arenas, as libumem's debugger shows them.

caches.py, arenas.py   what the library keeps of them: src/umem/descriptors.h
records.py, debugged.py what is remembered of one object under UMEM_DEBUG, or of all
commands.py            words of a command line, here or in gdb, to a report
walkers.py             addresses of one kind after the other
"""
