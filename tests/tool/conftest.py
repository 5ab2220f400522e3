# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the tests of the tool share: the package of the checkout, made-up statistics, fakes."""

import ctypes
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

MAIN = ROOT / "tools" / "terrace" / "__main__.py"

COLUMNS = [
    {"key": key, "title": key, "unit": unit, "kind": kind, "help": f"What {key} means."}
    for key, unit, kind in (
        ("allocations", "blocks", "monotonic"),
        ("frees", "blocks", "monotonic"),
        ("refills", "events", "monotonic"),
        ("spills", "events", "monotonic"),
        ("foreign", "blocks", "monotonic"),
        ("aborts", "events", "monotonic"),
        ("held", "bytes", "gauge"),
        ("purged", "bytes", "monotonic"),
    )
]


def make_statistics(pid: int = 7, **changes: Any) -> dict[str, Any]:
    """One process's statistics, schema 1."""
    core = {"allocations": 1000, "frees": 900, "refills": 9, "spills": 3, "held": 4096}
    statistics = {
        "schema": 1,
        "version": "0.1.0",
        "pid": pid,
        "command": "fake",
        "rung": "mm_cid",
        "rung_reason": "because it is a fake",
        "slots": 4,
        "page_size": 4096,
        "placement": "punctuated",
        "budget": 1 << 20,
        "columns": COLUMNS,
        "levels": [
            {"level": "core", "values": {**core, "foreign": 0, "aborts": 2}},
            {"level": "global", "values": {"allocations": 120, "frees": 0}},
        ],
        "classes": [
            {"class": 1, "size": 16, "levels": {"core": core, "global": {"allocations": 120}}},
        ],
        "memory": {
            "reserved": 1 << 30,
            "committed": 1 << 21,
            "live": 1600,
            "held": 4096,
            "purged": 0,
        },
    }
    return {**statistics, **changes}


@pytest.fixture
def statistics() -> Callable[..., dict[str, Any]]:
    return make_statistics


def harmless_library() -> str:
    """An object that may be preloaded without any effect: the C library itself."""
    name = "gnu_get_libc_version"
    for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines():
        path = line.split()[-1]
        if "/libc.so" in path or "/libc-" in path:
            assert hasattr(ctypes.CDLL(path), name)
            return path
    pytest.skip("no C library to preload")


@pytest.fixture
def terrace(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs the command with a stand-in for the library."""

    def run(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
        environment = {
            **os.environ,
            "TERRACE_LIBRARY": harmless_library(),
            "TMPDIR": str(tmp_path),
            **options.pop("env", {}),
        }
        return subprocess.run(
            [sys.executable, "-I", str(MAIN), *arguments],
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            **options,
        )

    return run


@pytest.fixture
def script(tmp_path: Path) -> Callable[[str, str], Path]:
    """Writes an executable script."""

    def write(name: str, text: str) -> Path:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)
        return path

    return write
