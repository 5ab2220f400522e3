# SPDX-License-Identifier: MIT OR Apache-2.0
"""Four processes that take tasks as celery's do: read records, group them, write a report; each task in two threads."""

import json
import multiprocessing
import random
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

WORKERS = 4


def rows(chance: random.Random, count: int) -> str:
    return json.dumps(
        [
            {"id": i, "customer": f"customer {chance.randrange(5000)}", "total": chance.random() * 100, "note": "n" * chance.randrange(200)}
            for i in range(count)
        ]
    )


def grouped(text: str) -> int:
    by_customer: dict[str, list] = {}
    for row in json.loads(text):
        by_customer.setdefault(row["customer"], []).append(row)
    lines = [f"{name}: {sum(row['total'] for row in found):.2f} in {len(found)}" for name, found in by_customer.items()]
    return len("\n".join(sorted(lines)))


def task(number: int) -> tuple[int, float]:
    """How long the reports are, and the milliseconds."""
    began = time.perf_counter()
    chance = random.Random(number)
    texts = [rows(chance, chance.choice((500, 3000, 12_000))) for _ in range(2)]
    with ThreadPoolExecutor(2) as threads:
        return sum(threads.map(grouped, texts)), (time.perf_counter() - began) * 1000


def wait_for(path: Path) -> str:
    while not path.exists():
        time.sleep(0.02)
    return path.read_text()


def main() -> None:
    with multiprocessing.get_context("fork").Pool(WORKERS) as pool:
        signal.signal(signal.SIGTERM, lambda *_: (pool.terminate(), sys.exit(0)))
        Path("ready").touch()
        times = sorted(time for length, time in pool.imap_unordered(task, range(int(wait_for(Path("tasks"))))) if length > 0)
        Path("loaded").write_text(f"{len(times)} {times[len(times) * 99 // 100]}")
        while True:
            signal.pause()


main()
