# SPDX-License-Identifier: MIT OR Apache-2.0
"""Serves the metrics, or writes them once."""

import argparse
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import psutil
from prometheus_client import (
    CollectorRegistry,
    generate_latest,
    start_http_server,
    write_to_textfile,
)

from terrace import messages
from terrace.debug.live import LiveTarget
from terrace.errors import TerraceError
from terrace.export.metrics import TerraceCollector


def of_name(name: str) -> list[int]:
    """By the kernel's name of a process, which ends after 15 bytes, or its program's."""
    return sorted(
        process.pid
        for process in psutil.process_iter(["name", "exe"])
        if name in (process.info["name"], Path(process.info["exe"] or "").name)
    )


def _pids(options: argparse.Namespace) -> Callable[[], list[int]]:
    if options.pid is not None:
        _ = LiveTarget(options.pid).heaps  # an error says why there is none
        return lambda: [options.pid]
    return lambda: of_name(options.match)


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise TerraceError(f"--listen {text}: an address and a port, 127.0.0.1:9696", 2)
    return host.strip("[]"), int(port)


def _serve(registry: CollectorRegistry, listen: str, until: threading.Event) -> None:
    host, port = _address(listen)
    try:
        server, thread = start_http_server(port, host, registry)
    except OSError as error:
        raise TerraceError(f"--listen {listen}: {error.strerror}") from None
    messages.say(f"metrics are at http://{listen.rpartition(':')[0]}:{server.server_port}/metrics")
    try:
        until.wait()
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _write(registry: CollectorRegistry, path: Path) -> None:
    if path == Path("-"):
        sys.stdout.write(generate_latest(registry).decode())
        return
    try:
        write_to_textfile(str(path), registry)
    except OSError as error:
        raise TerraceError(f"--textfile {path}: {error.strerror}") from None


def run(options: argparse.Namespace) -> int:
    """The exit status."""
    # It is filled by no default collectors: they would tell of this program.
    registry = CollectorRegistry(auto_describe=False)
    registry.register(TerraceCollector(_pids(options), options.sites))
    if options.textfile is not None:
        _write(registry, options.textfile)
        return 0
    ends = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ends.set())
    _serve(registry, options.listen, ends)
    return 0
