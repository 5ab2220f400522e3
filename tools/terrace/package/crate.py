# SPDX-License-Identifier: MIT OR Apache-2.0
"""The crates of integrations/rust with the sources of the library in them, by cargo."""

import re
import shutil
from pathlib import Path

from terrace.errors import TerraceError
from terrace.package.making import Source, call, fresh, known_files
from terrace.packages import command_version

CARGO = (1, 90)  # the first that packages crates which need each other
NAMES = ("terrace-sys", "terrace")
_FOLDER = "integrations/rust"
# What a crate compiles: every layer but the LAB engine, which stands beside malloc.
_BUNDLED = ("src", "include", ":!src/lab", ":!include/terrace/lab*")


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


def bundle(source: Source, tree: Path) -> Path:
    """The workspace with all that its crates need, in an empty `tree`; for a look or for cargo."""
    for name in known_files(source.root, _FOLDER, f":!{_FOLDER}/programs"):
        _copy(source.root / name, tree / Path(name).relative_to(_FOLDER))
    for name in known_files(source.root, *_BUNDLED):
        _copy(source.root / name, tree / "terrace-sys" / "native" / name)
    for crate in NAMES:
        for licence in source.root.glob("LICENSE-*"):
            _copy(licence, tree / crate / licence.name)
    manifest = (tree / "Cargo.toml").read_text(encoding="utf-8")
    found = re.search(r'^version = "([^"]+)"', manifest, re.M)
    if found is None or found.group(1) != source.version:
        version = found.group(1) if found else "none"
        raise TerraceError(f"{_FOLDER}/Cargo.toml has version {version}, CMake {source.version}")
    return tree


def make(source: Source, directory: Path, *, verify: bool = True) -> list[Path]:
    """NAME-VERSION.crate, as `cargo publish` sends them; `verify` compiles what is in them."""
    has = command_version("cargo")
    if has < CARGO:
        there = ".".join(map(str, has)) if has else "none"
        raise TerraceError(f"package crate: cargo >= 1.90 is needed, there is {there}")
    tree = bundle(source, fresh(directory) / "source")
    target = directory / "target"
    options = ["--workspace", "--locked", "--allow-dirty", *([] if verify else ["--no-verify"])]
    call(["cargo", "package", *options], tree, CARGO_TARGET_DIR=str(target))
    made = [directory / f"{name}-{source.version}.crate" for name in NAMES]
    for crate in made:
        shutil.move(target / "package" / crate.name, crate)
    return made
