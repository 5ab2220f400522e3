# SPDX-License-Identifier: MIT OR Apache-2.0
"""Which code holds the memory of a process: `terrace profile`.

model.py, collect.py          a profile: stacks, and what each holds (debug/sampled reads them)
pprof.py                      its file; profile.proto is the format's own definition
formats.py, flamegraph.py, text.py  what else can be written
diff.py                       what grew between two
watch.py                      a process for some seconds
program.py                    a program from its start to its exit
switch.py                     sampling on and off
"""
