# SPDX-License-Identifier: MIT OR Apache-2.0
"""What a release needs, one function each: returns what is there, raises TerraceError otherwise."""

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from terrace.checkout import Checkout
from terrace.errors import TerraceError
from terrace.package.command import kinds, make_twice, write_sums
from terrace.package.making import MACHINES, Source, build_libraries, call, source_for
from terrace.release import sbom

# Each has the version of CMakeLists.txt: where it stands, as a regular expression.
_VERSIONS = {
    "meson.build": r"^project\('terrace', version: '([^']+)'",
    "packaging/vcpkg/vcpkg.json": r'^  "version": "([^"]+)"',
    "tools/terrace/__init__.py": r'^__version__ = "(\S+)"',
    "integrations/rust/Cargo.toml": r'^version = "(\S+)"',
}
_PARTS = r"#define TERRACE_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)"


def version(source: Source) -> str:
    found = {}
    for name, pattern in _VERSIONS.items():
        match = re.search(pattern, (source.root / name).read_text(encoding="utf-8"), re.MULTILINE)
        found[name] = match.group(1) if match else "none"
    header = "include/terrace/version.h"
    parts = re.findall(_PARTS, (source.root / header).read_text(encoding="utf-8"))
    found[header] = ".".join(parts)
    unlike = [f"{name} has {has}" for name, has in found.items() if has != source.version]
    if unlike:
        raise TerraceError(f"CMakeLists.txt has {source.version}, but {', '.join(unlike)}")
    return source.version


def changelog(source: Source) -> str:
    text = (source.root / "CHANGELOG.md").read_text(encoding="utf-8")
    found = re.search(
        rf"^## {re.escape(source.version)} - (\S+)\n(.*?)(?=^## |\Z)", text, re.M | re.S
    )
    if found is None:
        raise TerraceError(f"CHANGELOG.md has no heading '## {source.version} - DATE'")
    if not re.search(r"^- ", found.group(2), re.M):
        raise TerraceError(f"CHANGELOG.md says nothing of {source.version}")
    if not re.fullmatch(r"\d{4}-\d\d-\d\d", found.group(1)):
        raise TerraceError(f"CHANGELOG.md: {source.version} has no date, but '{found.group(1)}'")
    return f"{source.version} of {found.group(1)}"


def committed(source: Source) -> str:
    changed = call(["git", "status", "--porcelain"], source.root).splitlines()
    if changed:
        raise TerraceError(f"not committed: {' '.join(line[3:] for line in changed[:5])}")
    return call(["git", "rev-parse", "HEAD"], source.root).strip()


def licences(source: Source) -> str:
    said = call([sys.executable, "-m", "reuse", "lint"], source.root)
    return next(line for line in said.splitlines() if line.startswith("* Used licenses"))[2:]


def libraries(checkout: Checkout, sources: list[Source]) -> str:
    for source in sources:
        build_libraries(checkout, source, musl=True)
    return " ".join(str(source.built.relative_to(checkout.root)) for source in sources)


def interface(source: Source) -> str:
    script = source.root / "tests" / "abi" / "abi.py"
    said = call([sys.executable, str(script), "--build", str(source.built)], source.root)
    return ", ".join(line.partition(":")[0] for line in said.splitlines()) + " as recorded"


def packages(sources: list[Source], directory: Path) -> str:
    made = []
    for source in sources:
        place = directory / source.arch if source.is_cross else directory
        place.mkdir(parents=True, exist_ok=True)
        for kind in kinds(source):
            made += make_twice(kind, source, place / kind)
    count = len(write_sums(directory, made).splitlines())
    of = "; ".join(f"{source.arch}: {' '.join(kinds(source))}" for source in sources)
    return f"{count} files, made twice with the same bytes, {of}"


def steps(checkout: Checkout) -> Iterator[tuple[str, Callable[[], str]]]:
    """In the order in which they are told; what takes long is last."""
    directory = checkout.build / "packages"
    source = source_for(checkout)
    arm64 = source_for(checkout, MACHINES["arm64"])
    sources = [source, *([arm64] if arm64.is_cross else [])]
    yield "version", lambda: version(source)
    yield "changelog", lambda: changelog(source)
    yield "commit", lambda: committed(source)
    yield "licences", lambda: licences(source)
    yield "libraries", lambda: libraries(checkout, sources)
    yield "interface", lambda: interface(source)
    yield "packages", lambda: packages(sources, directory)
    yield "contents", lambda: sbom.write(source, directory)
