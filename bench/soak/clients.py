# SPDX-License-Identifier: MIT OR Apache-2.0
"""Clients of redis and memcached over Unix sockets: many commands in one write, every answer looked at."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import BinaryIO

from workload import Failed

ANSWER_SECONDS = 120.0  # beside other load, an answer may take long; a server that hangs has to be noticed

Word = str | bytes | int


def _bytes(word: Word) -> bytes:
    return word if isinstance(word, bytes) else str(word).encode()


class _Connection:
    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(ANSWER_SECONDS)
        self._socket.connect(str(path))
        self._answers: BinaryIO = self._socket.makefile("rb")

    def _line(self) -> bytes:
        line = self._answers.readline()
        if not line.endswith(b"\r\n"):
            raise Failed("the server closed the connection")
        return line[:-2]

    def _block(self, size: int) -> bytes:
        data = self._answers.read(size + 2)
        if len(data) != size + 2:
            raise Failed("the server closed the connection")
        return data[:-2]

    def close(self) -> None:
        self._answers.close()
        self._socket.close()


class Redis(_Connection):
    """RESP 2."""

    def calls(self, commands: Iterable[Sequence[Word]]) -> list[object]:
        out = bytearray()
        count = 0
        for command in commands:
            words = [_bytes(word) for word in command]
            out += b"*%d\r\n" % len(words)
            for word in words:
                out += b"$%d\r\n%b\r\n" % (len(word), word)
            count += 1
        self._socket.sendall(out)
        return [self._answer() for _ in range(count)]

    def call(self, *command: Word) -> object:
        return self.calls([command])[0]

    def _answer(self) -> object:
        line = self._line()
        kind, rest = line[:1], line[1:]
        if kind == b"-":
            raise Failed(f"redis: {rest.decode(errors='replace')}")
        if kind == b":":
            return int(rest)
        if kind == b"$":
            return None if rest == b"-1" else self._block(int(rest))
        if kind == b"*":
            return None if rest == b"-1" else [self._answer() for _ in range(int(rest))]
        return rest.decode()


class Memcached(_Connection):
    """The text protocol."""

    def set(self, items: Sequence[tuple[str, bytes]]) -> None:
        out = b"".join(b"set %b 0 0 %d\r\n%b\r\n" % (k.encode(), len(v), v) for k, v in items)
        self._socket.sendall(out)
        for _ in items:
            if (line := self._line()) != b"STORED":
                raise Failed(f"memcached: {line.decode(errors='replace')}")

    def get(self, keys: Sequence[str]) -> dict[str, bytes]:
        self._socket.sendall(b"get " + " ".join(keys).encode() + b"\r\n")
        found: dict[str, bytes] = {}
        while (line := self._line()) != b"END":
            word, key, _flags, size = line.split()[:4]
            if word != b"VALUE":
                raise Failed(f"memcached: {line.decode(errors='replace')}")
            found[key.decode()] = self._block(int(size))
        return found

    def delete(self, keys: Sequence[str]) -> None:
        self._socket.sendall(b"".join(b"delete %b\r\n" % key.encode() for key in keys))
        for _ in keys:
            if (line := self._line()) not in (b"DELETED", b"NOT_FOUND"):
                raise Failed(f"memcached: {line.decode(errors='replace')}")

    def version(self) -> str:
        self._socket.sendall(b"version\r\n")
        return self._line().decode()
