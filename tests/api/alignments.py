#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs alignments.cpp in every mode of every object: rungs, placements, checks, and libumem's flags and sizes.

alignments.py --program PROGRAM --build DIR
"""

import argparse
import itertools
import os
import pathlib
import subprocess
import sys

RUNGS = ("mm_cid", "cpu_id", "getcpu", "thread")
PLACEMENTS = ("none", "punctuated", "odd", "random:0.5")
# Of UMEM_DEBUG: one of each line, together.
FLAGS = (("", "audit", "audit,contents"), ("", "guards", "lite", "guards,maxverify=0"))
# Objects with pages of their own take long: not with each of these.
FIREWALLS = ("firewall=1", "guards,firewall=1", "default,firewall=4096", "lite,firewall=65536")
OTHERS = ("random", "default,nosignal", "default,noabort", "default,checknull")
# Of UMEM_OPTIONS, without and with checks.
SIZES = ("size_clear", "size_clear,size_add=40", "size_add=24", "size_add=40", "size_remove=64", "size_remove=4096")
OPTIONS = (*SIZES, "nomagazines", "perthread_cache=0")

Mode = tuple[str, dict[str, str]]  # what is preloaded, and the environment


def modes(build: pathlib.Path) -> list[Mode]:
    terrace, hardened, umem = (str(build / f"{name}.so") for name in ("libterrace", "libterrace-hardened", "libumem_malloc"))
    found: list[Mode] = [("", {})]
    found += [(terrace, {"TERRACE_RUNG": r, "TERRACE_PLACEMENT": p}) for r in RUNGS for p in PLACEMENTS]
    found += [(terrace, {"TERRACE_CHECK": check, "TERRACE_RUNG": r}) for check in ("1", "1,sample:7") for r in ("mm_cid", "thread")]
    if pathlib.Path(hardened).exists():
        found += [(hardened, {"TERRACE_RUNG": r}) for r in ("getcpu", "thread")] + [(hardened, {"TERRACE_CHECK": "1"})]
    debug = [",".join(filter(None, flags)) for flags in itertools.product(*FLAGS)]
    found += [(umem, {"UMEM_DEBUG": d}) for d in (*debug, *FIREWALLS, *OTHERS)]
    found += [(umem, {"UMEM_DEBUG": d, "UMEM_OPTIONS": o}) for d in ("", "guards") for o in OPTIONS]
    found += [(umem, {"UMEM_DEBUG": "default", "TERRACE_RUNG": r}) for r in RUNGS]
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    options = parser.parse_args()
    failed = 0
    for preload, variables in modes(options.build):
        environment = {**os.environ, **variables, **({"LD_PRELOAD": preload} if preload else {})}
        done = subprocess.run([options.program], env=environment, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            continue
        failed += 1
        where = " ".join((pathlib.Path(preload).name or "libc", *(f"{k}={v}" for k, v in variables.items())))
        print(f"{where}: {done.returncode}\n{done.stdout[:2000]}{done.stderr[:2000]}", flush=True)
    print(f"{failed} of {len(modes(options.build))} modes failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
