# SPDX-License-Identifier: MIT OR Apache-2.0
"""JSON there and back: strings and small containers of all sizes, all alive at once, then all freed."""

import json
import random


def document(rng: random.Random, number: int) -> dict[str, object]:
    return {
        "id": number,
        "name": "n" * rng.randrange(1, 40) + str(number),
        "tags": [f"t{rng.randrange(500)}" for _ in range(rng.randrange(8))],
        "scores": {f"s{i}": rng.random() for i in range(rng.randrange(6))},
        "text": "lorem ipsum " * rng.randrange(30),
    }


rng = random.Random(1)
total = 0
for _ in range(4):
    text = json.dumps([document(rng, i) for i in range(12_000)])
    back = json.loads(text)
    total += len(text) + sum(len(d["tags"]) for d in back)
print("documents", total)
