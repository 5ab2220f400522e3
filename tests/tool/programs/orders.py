# SPDX-License-Identifier: MIT OR Apache-2.0
"""Holds 20 MiB by one function, for tests of `terrace profile`."""

import sys


class Shop:
    def __init__(self) -> None:
        self.kept: list[bytes] = []

    def take_orders(self) -> None:
        for i in range(512):
            self.kept.append(make_order(i))


def make_order(i: int) -> bytes:
    return bytes((40 << 10) + i % 3)


def main() -> None:
    shop = Shop()
    shop.take_orders()
    print("ready", flush=True)
    sys.stdin.read(1)


main()
