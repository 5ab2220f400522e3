# SPDX-License-Identifier: MIT OR Apache-2.0
"""1 to 10,000 threads that have used a little memory and sleep: what is held beyond live objects and stacks?"""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "common"))

from interleave import AGAIN, Subject, Values, glibc, interleaved, preloaded, run, save_raw, spread
from report import Report, arguments, figure, save

THREADS = (1, 10, 100, 1000, 2000, 5000, 10000)
# What libc itself keeps alive for each thread by malloc: the vector of its thread-local modules (64 + 2 entries of 16 bytes,
# allocated by calloc), in the 16 bytes' granularity of every allocator here.
LIVE_BYTES_PER_THREAD = (64 + 2) * 16 + 16


def _measure(subject: Subject, program: Path, counts: tuple[int, ...]) -> Values:
    values: Values = {}
    for n in counts:
        grown = json.loads(run(subject, [str(program), str(n)]))["grown_bytes"]
        values[str(n)] = (grown - n * 0) / 2**20
    return values


def main(argv: list[str]) -> int:
    options = arguments(__doc__, argv, rounds=5)
    counts = (1, 50) if options.smoke else THREADS
    subjects = [glibc(), preloaded("terrace", options.library)]
    program = options.build / "bench" / "seeds" / "bench_sleepers"
    results = interleaved(subjects, options.rounds, lambda s: _measure(s, program, counts))
    save_raw(options.out, "sleepers", results)
    report = Report("sleepers", options.out)
    rows = [[n, *(spread(v[str(n)] for v in results[name]) for name in ("glibc", AGAIN, "terrace"))] for n in counts]
    report.table(["threads", "glibc MiB", "glibc again MiB", "terrace MiB"], rows)
    report.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
