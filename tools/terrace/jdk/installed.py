# SPDX-License-Identifier: MIT OR Apache-2.0
"""The installed JDK of the source's version: what is copied, compiled with and compared with."""

import os
import re
import shutil
from pathlib import Path

from terrace.errors import TerraceError
from terrace.jdk.source import Source

# Where distributions and vendors put JDKs.
_PLACES = ("/usr/lib/jvm", "/opt", "/opt/java", "/usr/java", "/usr/local")


def runtime_version(jdk: Path) -> str:
    """'25.0.3+9-LTS' of the file `release`; "" if there is none."""
    try:
        text = (jdk / "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    found = re.search(r'^JAVA_RUNTIME_VERSION="(.*)"$', text, re.MULTILINE)
    return found.group(1) if found else ""


def _candidates() -> list[Path]:
    """By preference: $JAVA_HOME, the one on the PATH, those where they are put."""
    named = [Path(value) for name in ("JAVA_HOME",) if (value := os.environ.get(name))]
    java = shutil.which("java")
    if java:
        named.append(Path(java).resolve().parents[1])
    return named + sorted(jdk for place in _PLACES for jdk in Path(place).glob("*"))


def find_jdk(source: Source) -> Path:
    """An installed JDK of exactly the source's version, with a compiler."""
    for jdk in _candidates():
        version = runtime_version(jdk)
        exact = version == source.version or version.startswith(f"{source.version}-")
        if exact and (jdk / "bin" / "javac").exists():
            return jdk.resolve()
    raise TerraceError(
        f"a JDK {source.version} is needed, to compile with and to be copied; JAVA_HOME may name it"
    )
