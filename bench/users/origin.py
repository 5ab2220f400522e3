# SPDX-License-Identifier: MIT OR Apache-2.0
"""A small web server to stand behind a cache: /N is always the same text, of a size that N decides. Prints its port."""

import asyncio
import hashlib

SMALLEST, LARGEST = 128, 128 * 1024


def number_of(path: str) -> int:
    """What cannot be read is 0."""
    return int(path[1:]) if path[1:].isdigit() else 0


def size_of(number: int) -> int:
    """Bytes: as many texts between 128 and 256 as between 64 Ki and 128 Ki."""
    drawn = int.from_bytes(hashlib.blake2b(str(number).encode(), digest_size=4).digest(), "big") / 2**32
    return int(SMALLEST * (LARGEST / SMALLEST) ** drawn)


def body_of(number: int) -> bytes:
    line = f"{number:>15}\n".encode()
    size = size_of(number)
    return (line * (size // len(line) + 1))[:size]


def answer_to(request: bytes) -> bytes:
    """A request up to its empty line."""
    words = request.split(b" ", 2)
    body = body_of(number_of(words[1].decode("latin-1"))) if len(words) > 1 else b""
    return b"HTTP/1.1 200 OK\r\nCache-Control: max-age=3600\r\nContent-Length: %d\r\n\r\n" % len(body) + body


class Origin(asyncio.Protocol):
    """A connection; requests have no body."""

    def __init__(self) -> None:
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        while (end := self._received.find(b"\r\n\r\n")) >= 0:
            request, self._received = self._received[:end], self._received[end + 4 :]
            self._transport.write(answer_to(request))  # type: ignore[attr-defined]


async def serve() -> None:
    server = await asyncio.get_running_loop().create_server(Origin, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve())
