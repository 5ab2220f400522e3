# SPDX-License-Identifier: MIT OR Apache-2.0
"""Where and of what was measured: the machine, hashes of what takes part, versions of the allocators."""

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path

import hardware
from interleave import Subject


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
    processor = hardware.processor()
    return {
        "processor": processor.model,
        "vendor": processor.vendor,
        "family": processor.family,
        "cores": str(hardware.cores()),
        "memory": _memory(),
        "kernel": hardware.kernel(),
        "C library": hardware.libc(),
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
