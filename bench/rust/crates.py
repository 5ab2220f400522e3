# SPDX-License-Identifier: MIT OR Apache-2.0
"""Rust programs built once for each global allocator."""

import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from report import ROOT
from workload import Failed, ran

CRATES = ROOT / "integrations" / "rust" / "bench"
BUILT = ROOT / "build" / "rust"
SYSTEM, TERRACE = "system", "terrace"
ALLOCATORS = (SYSTEM, TERRACE, "mimalloc", "jemalloc", "snmalloc")  # features of the crate `allocator`; the system's needs none
MINUTES = 40


def _cargo(*words: str, cwd: Path) -> str:
    return ran(["cargo", *words], name="cargo " + words[0], cwd=cwd, timeout=MINUTES * 60).stdout


def binary(name: str, allocator: str) -> Path:
    return BUILT / f"{name}-{allocator}"


def is_current(program: Path) -> bool:
    """Of a program and other allocators of fixed versions, since these were changed last."""
    return program.exists() and program.stat().st_mtime > (CRATES / "allocator" / "Cargo.toml").stat().st_mtime


def built(folder: Path, name: str, allocator: str, feature: str, options: Sequence[str] = ()) -> Path:
    """The program `name` of the package in `folder`, under a name of its own. `feature` precedes the allocator's in the feature's name."""
    chosen = [] if allocator == SYSTEM else ["--features", f"{feature}{allocator}"]
    said = _cargo("build", "--release", "--quiet", "--message-format=json", "--target-dir", str(BUILT / "target"), *options, *chosen,
                  cwd=folder)
    artefacts = [a for a in map(json.loads, said.splitlines()) if a.get("executable") and a["target"]["name"] == name]
    if not artefacts:
        raise Failed(f"cargo made no {name} in {folder}")
    made = binary(name, allocator)
    made.unlink(missing_ok=True)  # not written over: it may run
    shutil.copy(artefacts[-1]["executable"], made)
    return made


def unpacked(name: str, version: str) -> Path:
    """The published source of a program, as it is."""
    home = Path(os.environ.get("CARGO_HOME") or Path.home() / ".cargo")
    places = f"registry/src/*/{name}-{version}"
    BUILT.mkdir(parents=True, exist_ok=True)
    if not list(home.glob(places)):
        _cargo("info", "--quiet", f"{name}@{version}", cwd=BUILT)  # it unpacks what it looks at
    found = sorted(home.glob(places))
    if not found:
        raise Failed(f"cargo does not unpack {name} {version} to {home / places}")
    return found[-1]


def with_allocator(name: str, version: str, main: str) -> Path:
    """A copy of the source that uses the crate `allocator`: by two lines in the manifest and one in `main`."""
    folder, unfinished = BUILT / f"{name}-{version}", BUILT / "unfinished"
    if folder.exists():
        return folder
    shutil.rmtree(unfinished, ignore_errors=True)
    shutil.copytree(unpacked(name, version), unfinished)
    for file, lines in (("Cargo.toml", f'[dependencies.allocator]\npath = "{CRATES / "allocator"}"\n[workspace]\n'),
                        (main, "use allocator as _;\n")):
        with (unfinished / file).open("a", encoding="utf-8") as end:
            end.write("\n" + lines)
    return unfinished.rename(folder)
