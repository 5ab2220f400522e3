# SPDX-License-Identifier: MIT OR Apache-2.0
"""Clients of redis and memcached over Unix sockets: many commands in one write; an error is the server's failure."""

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pymemcache
import redis
from workload import Failed

ANSWER_SECONDS = 120.0  # beside other load, an answer may take long; a server that hangs has to be noticed

Word = str | bytes | int


@contextlib.contextmanager
def _answers(name: str) -> Iterator[None]:
    try:
        yield
    except (redis.RedisError, pymemcache.MemcacheError, OSError) as error:
        raise Failed(f"{name}: {error}") from error


class Redis:
    def __init__(self, path: Path) -> None:
        self._client = redis.Redis(unix_socket_path=str(path), socket_timeout=ANSWER_SECONDS)
        self.close = self._client.close

    def calls(self, commands: Iterable[Sequence[Word]]) -> list[object]:
        pipeline = self._client.pipeline(transaction=False)
        for command in commands:
            pipeline.execute_command(*command)
        with _answers("redis"):
            return list(pipeline.execute())

    def call(self, *command: Word) -> object:
        return self.calls([command])[0]


class Memcached:
    def __init__(self, path: Path) -> None:
        self._client = pymemcache.Client(str(path), timeout=ANSWER_SECONDS, default_noreply=False)
        self.close = self._client.close

    def set(self, items: dict[str, bytes]) -> None:
        with _answers("memcached"):
            if failed := self._client.set_many(items):
                raise Failed(f"memcached does not store {failed}")

    def get(self, keys: Sequence[str]) -> dict[str, bytes]:
        with _answers("memcached"):
            return dict(self._client.get_many(keys))

    def delete(self, keys: Sequence[str]) -> None:
        with _answers("memcached"):
            self._client.delete_many(keys)

    def version(self) -> str:
        with _answers("memcached"):
            return bytes(self._client.version()).decode()
