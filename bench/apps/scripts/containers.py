# SPDX-License-Identifier: MIT OR Apache-2.0
"""Dictionaries, lists and byte strings that grow, are replaced and die in another order than they were made in."""

import random

rng = random.Random(2)
table: dict[int, list[bytes]] = {}
kept = 0
for step in range(500_000):
    key = rng.randrange(30_000)
    if rng.random() < 0.25:
        kept += len(table.pop(key, ()))
    else:
        table.setdefault(key, []).append(b"x" * (step * 7919 % 900))
words = [f"word{i * 7919 % 10007}" for i in range(300_000)]
words.sort()
counts: dict[str, int] = {}
for word in words:
    counts[word] = counts.get(word, 0) + 1
sets = [frozenset(words[i : i + 40]) for i in range(0, len(words), 20)]
print("containers", kept, len(table), len(counts), sum(map(len, sets)))
