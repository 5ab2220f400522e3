#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the reserve for prefetching costs in small TLABs: two JDKs, with it and without, in turns.

measure.py WITH WITHOUT [--rounds N] [--threads N] [--objects N]    directories of JDKs

Processor time is that of the whole process, its collections included. The ratio is the median of
the rounds' ratios, with the smallest and the largest.
"""

import argparse
import os
import pathlib
import re
import statistics
import subprocess
import tempfile
from itertools import product

HERE = pathlib.Path(__file__).resolve().parent
COLLECTORS = ("Parallel", "G1", "Serial")
SIZES = ("2k", "4k", "16k")
HEAP = ("-Xms512m", "-Xmx512m", "-Xmn256m", "-XX:-ResizeTLAB")


def run(
    jdk: pathlib.Path, flags: tuple[str, ...], words: tuple[str, ...], log: pathlib.Path
) -> tuple[float, int, int]:
    """Seconds of processor time, refills, collections."""
    command = [str(jdk / "bin" / "java"), *HEAP, *flags, f"-Xlog:gc,gc+tlab=debug:{log}", *words]
    process = subprocess.Popen(command)
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        raise SystemExit(f"{' '.join(command)}: exit status {os.waitstatus_to_exitcode(status)}")
    text = log.read_text()
    refills = sum(int(found) for found in re.findall(r"TLAB totals: .* refills: (\d+)", text))
    return usage.ru_utime + usage.ru_stime, refills, len(re.findall(r"Pause ", text))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("jdks", type=pathlib.Path, nargs=2, metavar="JDK")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--objects", type=int, default=40_000_000, help="of each thread")
    options = parser.parse_args()
    print("| collector, TLAB | objects per TLAB: with | without ", end="")
    print("| collections: with | without | processor time, without / with |")
    print("|---|--:|--:|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as scratch:
        subprocess.run(
            [str(options.jdks[0] / "bin" / "javac"), "-d", scratch, str(HERE / "Allocate.java")],
            check=True,
        )
        words = ("-cp", scratch, "Allocate", str(options.threads), str(options.objects))
        for collector, size in product(COLLECTORS, SIZES):
            flags = (f"-XX:+Use{collector}GC", f"-XX:TLABSize={size}")
            rounds = [
                [run(jdk, flags, words, pathlib.Path(scratch) / "log") for jdk in options.jdks]
                for _ in range(options.rounds)
            ]
            ratios = sorted(without[0] / kept[0] for kept, without in rounds)
            total = options.threads * options.objects
            counts = [total / statistics.median(one[jdk][1] for one in rounds) for jdk in (0, 1)]
            counts += [statistics.median(one[jdk][2] for one in rounds) for jdk in (0, 1)]
            shown = " | ".join(f"{count:,.0f}" for count in counts)
            ratio = f"{statistics.median(ratios):.2f} ({ratios[0]:.2f}-{ratios[-1]:.2f})"
            print(f"| {collector}, {size} | {shown} | {ratio} |", flush=True)


if __name__ == "__main__":
    main()
