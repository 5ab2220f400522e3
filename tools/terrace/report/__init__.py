# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the command says of a run, for people.

stats.py               the statistics that processes leave, added up
cells.py               words and numbers of its tables
tables.py, plain.py    the tables: by rich, or without it, by text.py
record.py              what is in a trace of `record`
silence.py             why a program left no statistics
"""
