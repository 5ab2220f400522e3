# SPDX-License-Identifier: MIT OR Apache-2.0
"""Objects with pointers between them: trees, a graph with cycles for the collector, exceptions, generators, pickles."""

import pickle
import random
from collections.abc import Iterator


class Node:
    def __init__(self, left: "Node | None", right: "Node | None", value: int) -> None:
        self.left, self.right, self.value = left, right, value
        self.near: list[Node] = []


def tree(depth: int, value: int = 1) -> Node:
    if depth == 0:
        return Node(None, None, value)
    return Node(tree(depth - 1, 2 * value), tree(depth - 1, 2 * value + 1), value)


def walk(node: "Node | None") -> Iterator[Node]:
    if node is not None:
        yield node
        yield from walk(node.left)
        yield from walk(node.right)


def parse(text: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        return len(str(error))


rng = random.Random(3)
total = 0
for _ in range(12):
    nodes = list(walk(tree(12)))
    for node in nodes:
        node.near = [rng.choice(nodes) for _ in range(3)]
    total += sum(near.value for node in nodes for near in node.near) % 1_000_003
    total += sum(parse("x" * (i % 5) + str(i)) for i in range(20_000))
    plain = [(n.value, [m.value for m in n.near], {"value": n.value}) for n in nodes]
    total += len(pickle.loads(pickle.dumps(plain)))
print("objects", total)
