# SPDX-License-Identifier: MIT OR Apache-2.0
"""Blocks that travel between processors go through the processor level, and only between processors do they count as foreign.

Two runs of the program: within one last-level cache (foreign must stay 0), and between two (foreign must not) where there are two.
"""

import argparse
import glob
import json
import os
import subprocess
import sys
import tempfile

SKIP = 77
BLOCK = 256


def read(path):
    with open(path, encoding="ascii") as file:
        return file.read().strip()


def cpus_of(text):
    """'0-2,5' -> [0, 1, 2, 5]"""
    ends = (part.split("-") for part in text.split(","))
    return [cpu for first, *last in ends for cpu in range(int(first), int((last or [first])[0]) + 1)]


def cache_of(cpu):
    """The CPUs of its last-level cache; of its package where each core has a level 2 of its own and no more is described."""
    here = f"/sys/devices/system/cpu/cpu{cpu}"
    levels = {int(read(f"{i}/level")): i for i in glob.glob(f"{here}/cache/index*")}
    if not levels:
        return None
    shared = cpus_of(read(f"{levels[max(levels)]}/shared_cpu_list"))
    if max(levels) <= 2 and len(shared) <= len(cpus_of(read(f"{here}/topology/core_cpus_list"))):
        return cpus_of(read(f"{here}/topology/package_cpus_list"))
    return shared


def last_level_caches():
    """The allowed CPUs of each, in order; one group of all where the kernel shows no caches."""
    allowed = os.sched_getaffinity(0)
    groups = set()
    for cpu in sorted(allowed):
        shared = cache_of(cpu)
        if shared is None:
            return [sorted(allowed)]
        groups.add(tuple(c for c in shared if c in allowed))
    return sorted(groups)


def statistics(options, giver, taker):
    with tempfile.TemporaryDirectory() as directory:
        file = f"{directory}/statistics"
        environment = {**os.environ, "LD_PRELOAD": options.preload, "TERRACE_RUNG": options.rung, "TERRACE_STATS_FILE": file}
        done = subprocess.run([options.program, str(giver), str(taker)], env=environment, stderr=subprocess.PIPE, text=True)
        if done.stderr.startswith("terrace: TERRACE_RUNG"):
            print(done.stderr, end="")
            sys.exit(SKIP)
        if done.returncode != 0 or done.stderr:
            sys.exit(f"status {done.returncode}: {done.stderr}")
        with open(file, encoding="utf-8") as text:
            return json.load(text)


def traffic(options, giver, taker):
    """(magazines and blocks through the processor level, foreign blocks) of the size that travels"""
    report = statistics(options, giver, taker)
    row = next(c for c in report["classes"] if c["size"] == BLOCK)["levels"]
    numbers = row["processor"]["spills"], row["processor"]["allocations"], row["core"]["foreign"]
    print(f"from CPU {giver} to CPU {taker}: %d magazines put into depots, %d blocks taken out, %d foreign" % numbers)
    return numbers


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("--preload", "--program", "--rung"):
        parser.add_argument(name, required=True)
    options = parser.parse_args()
    groups = last_level_caches()
    print(f"last-level caches: {groups}")
    near = groups[0]
    put, taken, foreign = traffic(options, near[0], near[-1])
    if put == 0 or taken == 0:
        sys.exit("nothing went through the processor level")
    if foreign != 0:
        sys.exit("foreign blocks within one last-level cache")
    for far in groups[1:]:
        put, taken, foreign = traffic(options, near[0], far[-1])
        if put == 0 or taken == 0 or foreign == 0:
            sys.exit("blocks went between two last-level caches, and no level counted it")


if __name__ == "__main__":
    main()
