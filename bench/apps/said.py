# SPDX-License-Identifier: MIT OR Apache-2.0
"""Reads what programs say: load generators their throughput, compilers their commands."""

import csv
import re
import shlex

from workload import Failed


def redis_seconds(text: str, tests: int, requests: int) -> float:
    """From `redis-benchmark --csv`: the time of all tests together. Each has to be there, with some throughput."""
    rows = [row for row in csv.reader(text.splitlines()) if len(row) >= 2 and row[0] != "test"]
    if len(rows) != tests:
        raise Failed(f"redis-benchmark ran {len(rows)} tests instead of {tests}: {text.strip()[-200:]}")
    try:
        rates = [float(row[1]) for row in rows]
    except ValueError as error:
        raise Failed(f"redis-benchmark says no throughput: {text.strip()[-200:]}") from error
    if min(rates) <= 0:
        raise Failed("redis-benchmark says a throughput of zero")
    return sum(requests / rate for rate in rates)


def pgbench_seconds(text: str, transactions: int) -> float:
    """The time without that for connecting. All transactions have to be done and none may have failed."""
    done = re.search(r"transactions actually processed: (\d+)/(\d+)", text)
    rate = re.search(r"^tps = ([0-9.]+)", text, re.M)
    failed = re.search(r"failed transactions: (\d+)", text)
    if done is None or rate is None or int(done[1]) != transactions or int(done[2]) != transactions:
        raise Failed(f"pgbench did not do {transactions} transactions: {text.strip()[-200:]}")
    if failed is not None and int(failed[1]) != 0:
        raise Failed(f"pgbench: {failed[1]} transactions failed")
    return transactions / float(rate[1])


def compiler_command(dry_run: str, program: str) -> list[str]:
    """The compiler proper's command out of what the driver prints with -###."""
    for line in dry_run.splitlines():
        words = shlex.split(line) if line.startswith(" ") else []
        if words and words[0].endswith(program):
            return words
    raise Failed(f"the compiler's driver runs no {program}: {dry_run[-200:]}")


def without_times(text: str) -> str:
    """What db_bench says of each benchmark without its times: the name and how many of how many keys were found."""
    found = re.findall(r"^(\w+)\s+:\s+[0-9.]+ micros/op.*?(\(\d+ of \d+ found\))?$", text, re.M)
    return "\n".join(f"{name} {keys}" for name, keys in found)
