# SPDX-License-Identifier: MIT OR Apache-2.0
"""What a measurement was made on: the processor as it is called, and the system around it."""

import os
import platform
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

CPUINFO = Path("/proc/cpuinfo")


@dataclass(frozen=True)
class Processor:
    model: str
    vendor: str = ""
    family: str = ""  # numbers: virtual machines often have names that tell little


def _fields(text: str) -> dict[str, str]:
    """Of lines "name : value", the first of each name."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        name, colon, value = line.partition(":")
        if colon:
            found.setdefault(name.strip(), value.strip())
    return found


def _numbers(found: dict[str, str], names: dict[str, str]) -> str:
    return ", ".join(f"{title} {found[name]}" for name, title in names.items() if name in found)


def described(cpuinfo: str, lscpu: Callable[[], str]) -> Processor:
    """x86-64 has the names in cpuinfo; on arm64 there are only numbers, which `lscpu` has names for."""
    found = _fields(cpuinfo)
    if "model name" in found:
        family = _numbers(found, {"cpu family": "family", "model": "model", "stepping": "stepping"})
        return Processor(found["model name"], found.get("vendor_id", ""), family)
    known = {name: value for name, value in _fields(lscpu()).items() if value not in ("", "-")}
    family = _numbers(found, {"CPU implementer": "implementer", "CPU part": "part", "CPU variant": "variant"})
    return Processor(known.get("Model name", platform.machine()), known.get("Vendor ID", ""), family)


def _lscpu() -> str:
    try:
        done = subprocess.run(["lscpu"], capture_output=True, text=True, check=False, env=os.environ | {"LC_ALL": "C"})
    except OSError:
        return ""
    return done.stdout


def processor() -> Processor:
    return described(CPUINFO.read_text(encoding="utf-8", errors="replace"), _lscpu)


def cores() -> int:
    return len(os.sched_getaffinity(0))


def libc() -> str:
    try:
        return os.confstr("CS_GNU_LIBC_VERSION") or "unknown"
    except ValueError:
        return "unknown"


def kernel() -> str:
    return f"{platform.system()} {platform.release()}"


def sentence() -> str:
    """For the head of a report."""
    found = processor()
    numbers = "; ".join(filter(None, [found.vendor, found.family]))
    named = f"{found.model} ({numbers})" if numbers else found.model
    many = cores()
    return f"Measured on {named}, {many} {'core' if many == 1 else 'cores'}, {kernel()}, {libc()}."


def commit(root: Path) -> str:
    """The commit of a checkout, with a + if it has changes; nothing where there is none."""
    command = ["git", "-C", str(root), "describe", "--always", "--exclude=*", "--abbrev=10", "--dirty=+"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
