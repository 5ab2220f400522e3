# SPDX-License-Identifier: MIT OR Apache-2.0
"""What this machine is, as far as an allocator cares. The file-system root can be a test's."""

import ctypes
import os
import resource
from pathlib import Path
from typing import Any

_AT_RSEQ_FEATURE_SIZE = 27
_MEM_UNLIMITED = 1 << 60  # cgroup v1 writes "no limit" as the largest multiple of the page size


def read_text(path: Path) -> str:
    """The stripped content, "" when there is none."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def bracketed(text: str) -> str:
    """'always [madvise] never' -> 'madvise'."""
    return text.partition("[")[2].partition("]")[0] or text


def parse_cpu_list(text: str) -> set[int]:
    """'0-3,8' -> {0, 1, 2, 3, 8}."""
    cpus: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        cpus.update(range(int(first), int(last or first) + 1))
    return cpus


def rseq() -> dict[str, Any]:
    """What the kernel offers (auxiliary vector) and what glibc registered (its public symbols)."""
    libc = ctypes.CDLL(None)
    libc.getauxval.restype = ctypes.c_ulong
    libc.getauxval.argtypes = [ctypes.c_ulong]

    def symbol(kind: Any, name: str) -> int | None:
        try:
            return int(kind.in_dll(libc, name).value)
        except ValueError:
            return None  # glibc before 2.35, or another libc

    return {
        "kernel_feature_size": int(libc.getauxval(_AT_RSEQ_FEATURE_SIZE)),
        "libc_size": symbol(ctypes.c_uint, "__rseq_size"),
        "libc_offset": symbol(ctypes.c_ssize_t, "__rseq_offset"),
    }


def libc_version() -> str:
    try:
        return os.confstr("CS_GNU_LIBC_VERSION") or "unknown"
    except (OSError, ValueError):
        return "not glibc"


def limits() -> dict[str, int | None]:
    """Soft limits in bytes, None for unlimited."""
    kinds = {"address_space": resource.RLIMIT_AS, "data": resource.RLIMIT_DATA}
    soft = {name: resource.getrlimit(kind)[0] for name, kind in kinds.items()}
    return {
        name: None if value == resource.RLIM_INFINITY else value for name, value in soft.items()
    }


def _group_directories(root: Path) -> list[Path]:
    """The cgroup v2 directories from this process's own up to the root."""
    top = root / "sys/fs/cgroup"
    lines = read_text(root / "proc/self/cgroup").splitlines()
    own = next((line[3:] for line in lines if line.startswith("0::")), None)
    if own is None:
        return []
    directory = top / own.lstrip("/")
    inside = [directory, *directory.parents]
    return [d for d in inside if d == top or top in d.parents]


def cgroup(root: Path = Path("/")) -> dict[str, Any]:
    """The tightest limits on the way up: memory in bytes, time in CPUs; None for no limit."""
    memory: list[int] = []
    cpus: list[float] = []
    for directory in _group_directories(root):
        limit = read_text(directory / "memory.max")
        if limit.isdigit():
            memory.append(int(limit))
        quota = read_text(directory / "cpu.max").split()
        if len(quota) == 2 and quota[0].isdigit():
            cpus.append(int(quota[0]) / int(quota[1]))
    old = read_text(root / "sys/fs/cgroup/memory/memory.limit_in_bytes")
    if old.isdigit() and int(old) < _MEM_UNLIMITED:
        memory.append(int(old))
    return {"memory": min(memory, default=None), "cpus": min(cpus, default=None)}


def _last_level_cache(cpu: Path) -> str:
    """Which CPUs share the largest data cache of this one."""
    best = (0, "")
    for index in cpu.glob("cache/index*"):
        level = read_text(index / "level")
        if read_text(index / "type") != "Instruction" and level.isdigit():
            best = max(best, (int(level), read_text(index / "shared_cpu_list")))
    return best[1]


def topology(root: Path = Path("/")) -> dict[str, Any]:
    """CPUs, last-level caches, nodes and the level-1 data cache."""
    system = root / "sys/devices/system"
    online = parse_cpu_list(read_text(system / "cpu/online")) or set(range(os.cpu_count() or 1))
    groups = {_last_level_cache(system / f"cpu/cpu{cpu}") or str(cpu) for cpu in online}
    cores = {
        read_text(system / f"cpu/cpu{cpu}/topology/thread_siblings_list") or str(cpu)
        for cpu in online
    }
    first = system / "cpu/cpu0/cache/index0"
    return {
        "cpus_online": len(online),
        "cpus_allowed": len(os.sched_getaffinity(0)),
        "cores": len(cores),
        "last_level_caches": len(groups),
        "nodes": len(parse_cpu_list(read_text(system / "node/online"))) or 1,
        "l1_data": {
            "size": read_text(first / "size"),
            "line": read_text(first / "coherency_line_size"),
            "sets": read_text(first / "number_of_sets"),
        },
    }


def collect(root: Path = Path("/")) -> dict[str, Any]:
    """Everything that `terrace doctor` shows about the machine."""
    kernel = os.uname()
    tunables = os.environ.get("GLIBC_TUNABLES", "")
    transparent = root / "sys/kernel/mm/transparent_hugepage/enabled"
    return {
        "kernel": f"{kernel.sysname} {kernel.release} {kernel.machine}",
        "libc": libc_version(),
        "page_size": os.sysconf("SC_PAGE_SIZE"),
        "transparent_huge_pages": bracketed(read_text(transparent)) or "unknown",
        "overcommit": read_text(root / "proc/sys/vm/overcommit_memory") or "unknown",
        "limits": limits(),
        "cgroup": cgroup(root),
        "rseq": {**rseq(), "switched_off": "glibc.pthread.rseq=0" in tunables},
        "topology": topology(root),
    }
