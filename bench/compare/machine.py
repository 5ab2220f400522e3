# SPDX-License-Identifier: MIT OR Apache-2.0
"""Where and of what was measured: the machine, hashes of what takes part, versions of the allocators."""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Iterable
from pathlib import Path

from interleave import Subject


def _cpu_model() -> str:
    """x86-64 has the name in cpuinfo; elsewhere the architecture has to do."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _memory() -> str:
    kib = int(Path("/proc/meminfo").read_text().split()[1])
    return f"{kib / 2**20:.1f} GiB"


def _huge_pages() -> str:
    try:
        setting = Path("/sys/kernel/mm/transparent_hugepage/enabled").read_text()
    except OSError:
        return "not there"
    return setting.partition("[")[2].partition("]")[0]


def facts() -> dict[str, str]:
    return {
        "processor": _cpu_model(),
        "cores": str(len(os.sched_getaffinity(0))),
        "memory": _memory(),
        "kernel": f"{platform.system()} {platform.release()}",
        "C library": (os.confstr("CS_GNU_LIBC_VERSION") or "unknown") if "CS_GNU_LIBC_VERSION" in os.confstr_names else "unknown",
        "page size": f"{os.sysconf('SC_PAGE_SIZE')} bytes",
        "transparent huge pages": _huge_pages(),
    }


def digest(paths: Iterable[Path]) -> str:
    """Of names and contents, short enough to be read."""
    total = hashlib.sha256()
    for path in sorted(paths):
        total.update(path.name.encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()[:16]


def objects(subject: Subject) -> list[Path]:
    return [Path(p) for p in subject.environment.get("LD_PRELOAD", "").split(":") if p]


def identity(subject: Subject) -> str:
    """What must not change between two runs: the objects' contents, and the settings."""
    settings = " ".join(f"{k}={v}" for k, v in sorted(subject.environment.items()) if k != "LD_PRELOAD")
    return " ".join(filter(None, [digest(objects(subject)) if objects(subject) else "the system's", settings]))
