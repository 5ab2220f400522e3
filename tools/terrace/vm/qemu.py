# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs one guest in qemu and keeps what its console said.

Emulated (TCG, a host thread for each CPU): it has no need of the host's CPU, and a guest of any
shape can be had. On x86-64 the made-up vendor matters: qemu describes a last-level cache for each
die only in the form that Intel's processors have. Without the instructions that a library or a kernel
takes for fast and that are emulated byte by byte, memory is cleared and copied in fewer steps.
"""

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from terrace.errors import TerraceError
from terrace.vm.rows import Machine, Row

_MEMORY_MIB = 4096
_X86 = ("-M", "q35", "-cpu", "max,vendor=GenuineIntel,la57=off,l3-cache=on,erms=off,avx=off,avx2=off")
_ARM = ("-M", "virt,gic-version=3", "-cpu", "neoverse-n1")


def _nodes(machine: Machine) -> list[str]:
    """The memory in equal parts, and a socket's CPUs with each."""
    if machine.nodes == 1:
        return []
    words: list[str] = []
    cpus = machine.cpus // machine.nodes
    for node in range(machine.nodes):
        part = f"id=m{node},size={_MEMORY_MIB // machine.nodes}M"
        words += ["-object", f"memory-backend-ram,{part}"]
        first = node * cpus
        words += ["-numa", f"node,nodeid={node},cpus={first}-{first + cpus - 1},memdev=m{node}"]
    return words


def command(row: Row, kernel: Path, root: Path) -> list[str]:
    """qemu's command line; the console is its standard output."""
    x86 = row.isa == "x86_64"
    console = "ttyS0" if x86 else "ttyAMA0"
    return [
        *("nice", "-n", "5"),
        *(f"qemu-system-{row.isa}", *(_X86 if x86 else _ARM)),
        *("-accel", "tcg,thread=multi,tb-size=1024"),
        *("-m", str(_MEMORY_MIB), "-smp", row.machine.smp),
        *_nodes(row.machine),
        *("-nodefaults", "-display", "none", "-no-reboot", "-serial", "stdio"),
        *("-kernel", str(kernel), "-initrd", str(root)),
        *("-append", f"console={console} quiet panic=-1 mitigations=off nokaslr rdinit=/init"),
    ]


def run(words: list[str], console: Path, seconds: float, look: Callable[[str], None]) -> bool:
    """Runs qemu with its output in `console`; `look` sees each new piece. False: too long."""
    end = time.monotonic() + seconds
    try:
        with console.open("wb") as out:
            process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT
            )
    except OSError as error:
        raise TerraceError(f"{words[0]}: {error.strerror}") from error
    try:
        with console.open("rb") as file:
            while process.poll() is None and time.monotonic() < end:
                time.sleep(1)
                look(file.read().decode(errors="replace"))
            look(file.read().decode(errors="replace"))
        return process.poll() is not None
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
