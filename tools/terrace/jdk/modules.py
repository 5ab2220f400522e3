# SPDX-License-Identifier: MIT OR Apache-2.0
"""`terrace jdk build`: what the queue changes in the copied JDK's lib/modules and lib/jfr.

Java classes, and the table of JFR's events: libjvm numbers them anew when there is one more, and
jdk.jfr reads the same table. And the version that jhsdb expects of libjvm, lest it warn of this.
"""

import hashlib
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from terrace.captured import run_tool
from terrace.checkout import Checkout
from terrace.jdk.source import integration, touched_by_queue
from terrace.messages import say

_METADATA = "src/hotspot/share/jfr/metadata/metadata.xml"
_METADATA_TABLE = "jdk.jfr/jdk/jfr/internal/types/metadata.bin"
_AGENT_VERSION = "jdk.hotspot.agent/sa.properties"
VERSION_OPT = "terrace"  # behind the JDK's version, in libjvm's
_INTERNAL = "jdk.jlink/jdk.tools.jlink.internal=ALL-UNNAMED"
_EXPORTS = ("--add-modules", "jdk.jlink", "--add-exports", _INTERNAL)


@dataclass(frozen=True)
class Changes:
    """Files that the queue touches, below the source tree."""

    classes: dict[str, list[Path]]  # Java sources by module
    settings: list[Path]  # of lib/jfr
    metadata: Path | None

    @property
    def files(self) -> list[Path]:
        one = [self.metadata] if self.metadata is not None else []
        sources = (source for sources in self.classes.values() for source in sources)
        return sorted([*one, *self.settings, *sources])


def changes(checkout: Checkout, tree: Path) -> Changes:
    classes: dict[str, list[Path]] = {}
    settings: list[Path] = []
    names = sorted(touched_by_queue(checkout))
    for name in names:
        parts = name.split("/")
        if name.endswith(".java") and parts[0] == "src" and parts[3] == "classes":
            classes.setdefault(parts[1], []).append(tree / name)
        elif name.endswith(".jfc"):
            settings.append(tree / name)
    return Changes(classes, settings, tree / _METADATA if _METADATA in names else None)


def _digest(found: Changes) -> str:
    digest = hashlib.sha256(VERSION_OPT.encode() if found.files else b"")
    for path in found.files:
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()


def _compile(jdk: Path, module: str, sources: list[Path], directory: Path) -> None:
    root = sources[0]
    while root.name != "classes":
        root = root.parent
    patch = ("--patch-module", f"{module}={root}", "-implicit:none", "-proc:none", "-nowarn")
    run_tool([str(jdk / "bin" / "javac"), *patch, "-d", str(directory), *map(str, sources)])


def _make_table(jdk: Path, metadata: Path, objects: Path, table: Path) -> None:
    generator = next(objects.rglob("build/tools/jfr/GenerateJfrFiles.class")).parents[3]
    java = [str(jdk / "bin" / "java"), "-cp", str(generator), "build.tools.jfr.GenerateJfrFiles"]
    read = ["--xml", str(metadata), "--xsd", str(metadata.with_suffix(".xsd"))]
    run_tool([*java, "--mode", "metadata", *read, "--output", str(table)])


def _name_version(properties: Path) -> None:
    text = properties.read_text(encoding="utf-8")
    named = re.sub(r"(saBuildVersion=[^-\n]*).*", rf"\1-{VERSION_OPT}", text)
    properties.write_text(named, encoding="utf-8")


def update(checkout: Checkout, jdk: Path, tree: Path, objects: Path, image: Path) -> bool:
    """Brings the image's modules to what the queue says; False if they were so already."""
    found = changes(checkout, tree)
    note = image / "terrace-modules"
    wanted = _digest(found)
    known = note.read_text(encoding="utf-8") if note.exists() else _digest(Changes({}, [], None))
    if known == wanted:
        return False
    say("writing lib/modules")
    scratch = image.with_suffix(".modules")
    shutil.rmtree(scratch, ignore_errors=True)
    modules = scratch / "modules"
    original = str(jdk / "lib" / "modules")
    run_tool([str(jdk / "bin" / "jimage"), "extract", "--dir", str(modules), original])
    for module, sources in found.classes.items():
        _compile(jdk, module, sources, modules / module)
    if found.metadata is not None:
        _make_table(jdk, found.metadata, objects, modules / _METADATA_TABLE)
    _name_version(modules / _AGENT_VERSION)
    program = integration(checkout) / "programs" / "Relink.java"
    made = scratch / "image"
    run_tool([str(jdk / "bin" / "java"), *_EXPORTS, str(program), str(modules), str(made)])
    made.replace(image / "lib" / "modules")
    for path in found.settings:
        shutil.copy2(path, image / "lib" / "jfr" / path.name)
    shutil.rmtree(scratch)
    note.write_text(wanted, encoding="utf-8")
    return True
