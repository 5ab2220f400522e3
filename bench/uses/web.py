# SPDX-License-Identifier: MIT OR Apache-2.0
"""Web servers, loaded by ApacheBench: Ruby's puma with threads, Node that resizes pictures, Rust on tokio."""

import os
import signal
import socket
import subprocess
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from recipe import find
from report import ROOT
from server import Service, load
from use import PROGRAMS, Done, Use, number, port_of
from workload import Failed, free_port, ran

BUILT = ROOT / "build" / "uses"


def _reserve(folder: Path) -> None:
    (folder / "port").write_text(str(free_port()))


def _answers(port: int) -> bool:
    with socket.create_connection(("127.0.0.1", port), timeout=1):
        return True


def _service(command: Callable[[int], Sequence[str]], end: signal.Signals, folder: Path) -> Service:
    port = port_of(folder)
    return Service(command(port), folder, partial(_answers, port), end)


def _load(requests: int, clients: int, folder: Path, share: float) -> Done:
    count = max(clients, round(requests * share))
    said = load(
        [find("ab") or "ab", "-q", "-n", str(count), "-c", str(clients), "-s", "120", f"http://127.0.0.1:{port_of(folder)}/"], cwd=folder
    )
    if number(r"^Complete requests:\s+(\d+)", said) != count or "Non-2xx" in said:
        raise Failed(f"ab did not get {count} answers: {said.strip()[-200:]}")
    return Done(count, number(r"^ +99% +(\d+)", said))


def _puma(port: int) -> list[str]:
    # The script that starts it is for the Ruby that this machine's packages have.
    return ["/usr/bin/ruby", "/usr/bin/puma", "-q", "-t", "16:16", "-b", f"tcp://127.0.0.1:{port}", str(PROGRAMS / "orders.ru")]


def _node(port: int) -> list[str]:
    return [find("node") or "node", str(BUILT / "sharp" / "pictures.js"), str(port)]


def _install_sharp(folder: Path) -> None:
    """Of a pinned version, once."""
    _reserve(folder)
    target = BUILT / "sharp"
    target.mkdir(parents=True, exist_ok=True)
    (target / "pictures.js").write_bytes((PROGRAMS / "pictures.js").read_bytes())
    if not (target / "node_modules" / "sharp").exists():
        ran(["npm", "install", "--no-audit", "--no-fund", "sharp@0.34.5"], cwd=target)


def _build_tokio(folder: Path) -> None:
    _reserve(folder)
    BUILT.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        ["cargo", "build", "--release", "--quiet", "--target-dir", str(BUILT / "tokio")], cwd=PROGRAMS.parent / "tokio",
        env=os.environ, capture_output=True, text=True, check=False,
    )
    if done.returncode != 0:
        raise Failed(f"cargo: {done.stderr.strip()[-300:]}")


def _tokio(port: int) -> list[str]:
    return [str(BUILT / "tokio" / "release" / "tokio-orders"), str(port)]


USES = (
    Use("ruby-puma", "Ruby: puma, 16 threads", ("ab", "/usr/bin/puma"), partial(_service, _puma, signal.SIGINT),
        partial(_load, 3000, 32), _reserve),
    Use("node-sharp", "Node: sharp resizes pictures", ("ab", "node", "npm"), partial(_service, _node, signal.SIGTERM),
        partial(_load, 160, 8), _install_sharp),
    Use("rust-tokio", "Rust: tokio, 64 workers", ("ab", "cargo"), partial(_service, _tokio, signal.SIGTERM),
        partial(_load, 60_000, 64), _build_tokio),
)
