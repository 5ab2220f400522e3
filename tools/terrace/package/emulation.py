# SPDX-License-Identifier: MIT OR Apache-2.0
"""Programs of another architecture: the kernel's binfmt_misc starts them by qemu-user."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from terrace.package.making import Source, call

_KERNEL = Path("/proc/sys/fs/binfmt_misc")
_RULES = Path("/usr/lib/binfmt.d")


@contextlib.contextmanager
def emulated(source: Source) -> Iterator[None]:
    """Registers qemu-user where the system has not, and takes that back."""
    name = f"qemu-{source.machine}"
    if not source.is_cross or (_KERNEL / name).exists():
        yield
        return
    with contextlib.ExitStack() as after:
        if not (_KERNEL / "register").exists():
            call(["mount", "-t", "binfmt_misc", "none", str(_KERNEL)], _RULES)
            after.callback(call, ["umount", str(_KERNEL)], _RULES)
        (_KERNEL / "register").write_bytes((_RULES / f"{name}.conf").read_bytes())
        after.callback((_KERNEL / name).write_text, "-1", encoding="ascii")
        yield
