# SPDX-License-Identifier: MIT OR Apache-2.0
"""What a guest boots: a kernel, and three cpio archives one after the other that become its root.

The first is a distribution's (cached by suite and architecture), the second the test programs, at
the paths they have on the host, the third the plan of this run. No disk, no network, no modules.
"""

import gzip
import json
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from terrace.captured import run_tool
from terrace.errors import TerraceError
from terrace.vm.archive import Archive

USERLAND = (
    *("libc6", "libstdc++6", "libgcc-s1", "python3", "busybox-static", "dash", "coreutils"),
    *("util-linux", "mount", "libhwloc15"),
)
_MERGED = ("bin", "lib", "lib64", "sbin")
_MOUNT_POINTS = ("dev", "proc", "sys", "tmp", "run", "root", "etc", "var/tmp")
_NOT_NEEDED = ("doc", "man", "locale", "info", "i18n", "zoneinfo", "perl", "bash-completion")

# The shell stays process 1: while it waits for Python it also reaps the orphans of the tests.
INIT = """#!/bin/sh
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
mount -t tmpfs tmpfs /dev/shm
mount -t tmpfs tmpfs /tmp
dmesg -n 1
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8
python3 -B /vm/guest.py /vm/plan.json
busybox poweroff -f
"""


def pack(tree: Path, target: Path) -> None:
    """The tree as a cpio archive that the kernel can unpack; whoever reads an earlier one goes on."""
    new = target.with_suffix(".new")
    with new.open("wb") as out:
        find = subprocess.Popen(["find", ".", "-print0"], cwd=tree, stdout=subprocess.PIPE)
        done = subprocess.run(
            ["cpio", "--null", "--create", "--format=newc", "--owner=+0:+0", "--quiet"],
            cwd=tree,
            stdin=find.stdout,
            stdout=out,
            check=False,
        )
        if find.wait() != 0 or done.returncode != 0:
            raise TerraceError(f"cpio could not pack {tree}")
    new.replace(target)


def unpack(package: Path, tree: Path) -> None:
    """Follows the links of a merged /usr, which `dpkg-deb -x` would replace."""
    with subprocess.Popen(
        ["dpkg-deb", "--fsys-tarfile", str(package)], stdout=subprocess.PIPE
    ) as files:
        done = subprocess.run(
            ["tar", "-x", "--keep-directory-symlink", "--no-same-owner", "-C", str(tree)],
            stdin=files.stdout,
            check=False,
        )
    if files.returncode != 0 or done.returncode != 0:
        raise TerraceError(f"{package.name} could not be unpacked")


def libc_version(packages: list[Path]) -> str:
    """'2.41' from libc6_2.41-12_amd64.deb."""
    for package in packages:
        if package.name.startswith("libc6_"):
            return package.name.split("_")[1].partition("-")[0].partition("%")[0]
    raise TerraceError("no libc6 among the guest's packages")


def _make_root(packages: list[Path], tree: Path) -> None:
    for name in _MERGED:
        (tree / "usr" / name).mkdir(parents=True)
        (tree / name).symlink_to(f"usr/{name}")
    for package in packages:
        unpack(package, tree)
    for name in _NOT_NEEDED:
        shutil.rmtree(tree / "usr" / "share" / name, ignore_errors=True)
    for name in _MOUNT_POINTS:
        (tree / name).mkdir(parents=True, exist_ok=True)
    if not (tree / "usr/bin/sh").exists():
        (tree / "usr/bin/sh").symlink_to("dash")
    (tree / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\n", "utf-8")
    (tree / "etc/group").write_text("root:x:0:\n", "utf-8")
    (tree / "init").write_text(INIT, "utf-8")
    (tree / "init").chmod(0o755)


def root_image(directory: Path, archive: Archive) -> tuple[Path, str]:
    """The distribution's part of a root and the version of its libc; made once."""
    target = directory / f"{archive.suite}-{archive.architecture}.cpio"
    note = target.with_suffix(".libc")
    if not note.exists():
        packages = archive.fetch_closure(USERLAND)
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=directory) as name:
            tree = Path(name)
            tree.chmod(0o755)
            _make_root(packages, tree)
            pack(tree, target)
        note.write_text(libc_version(packages), "utf-8")
    return target, note.read_text("utf-8")


def bootable(image: bytes) -> bytes:
    """The arm64 image out of its self-extracting EFI form ("MZ", then "zimg" at offset 4)."""
    if image[4:8] != b"zimg":
        return image
    begin = int.from_bytes(image[8:12], "little")
    size = int.from_bytes(image[12:16], "little")
    method = image[24:32].rstrip(b"\0")
    if method != b"gzip":
        raise TerraceError(f"a kernel image compressed with {method.decode()} can not be booted")
    return gzip.decompress(image[begin : begin + size])


def find_image(tree: Path, suite: str) -> tuple[Path, str]:
    """boot/vmlinuz-VERSION of older packages, usr/lib/modules/VERSION/vmlinuz of newer ones."""
    for image in sorted(tree.glob("boot/vmlinuz-*")):
        return image, image.name.removeprefix("vmlinuz-")
    for image in sorted(tree.glob("usr/lib/modules/*/vmlinuz*")):
        return image, image.parent.name
    raise TerraceError(f"no kernel in the packages of {suite}")


def kernel_image(directory: Path, archive: Archive) -> tuple[Path, str]:
    """The kernel of a suite, ready for qemu, and its version; fetched once."""
    target = directory / f"{archive.suite}-{archive.architecture}.kernel"
    note = target.with_suffix(".version")
    if not note.exists():
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=directory) as name:
            for package in archive.fetch_kernel():
                run_tool(["dpkg-deb", "-x", str(package), name])
            image, version = find_image(Path(name), archive.suite)
            target.write_bytes(bootable(image.read_bytes()))
        note.write_text(version, "utf-8")
    return target, note.read_text("utf-8")


def add_files(files: dict[Path, Path], target: Path, objcopy: str) -> None:
    """Packs files (path on the host -> path in the guest); debug information stays behind."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as name:
        tree = Path(name)
        tree.chmod(0o755)
        for source, place in files.items():
            copy = tree / place.relative_to("/")
            copy.parent.mkdir(parents=True, exist_ok=True)
            if source.read_bytes()[:4] == b"\x7fELF":
                run_tool([objcopy, "--strip-debug", str(source), str(copy)])
                copy.chmod(0o755)
            else:
                shutil.copy(source, copy)
        pack(tree, target)


def add_plan(plan: dict[str, Any], guest: Path, target: Path) -> None:
    """The third archive: what to run, and what runs it."""
    with tempfile.TemporaryDirectory(dir=target.parent) as name:
        tree = Path(name)
        tree.chmod(0o755)
        (tree / "vm").mkdir()
        shutil.copy(guest, tree / "vm" / "guest.py")
        (tree / "vm" / "plan.json").write_text(json.dumps(plan), "utf-8")
        pack(tree, target)


def join(parts: list[Path], target: Path) -> None:
    """One file of several; each is padded to 4 bytes, as the kernel wants it."""
    with target.open("wb") as out:
        for part in parts:
            with part.open("rb") as file:
                shutil.copyfileobj(file, out)
            out.write(b"\0" * (-out.tell() % 4))
