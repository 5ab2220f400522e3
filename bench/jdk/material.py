# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the experiments run: our Java programs, JMH's, and a source archive that is fetched once and checked. All below build/jdk-bench."""

import hashlib
import shutil
from dataclasses import dataclass
from pathlib import Path

import jvm
from jvm import NotRun, newest, run
from report import ROOT

HERE = Path(__file__).resolve().parent
BUILT = ROOT / "build" / "jdk-bench"
ARCHIVE = "lucene-core-9.12.0-sources.jar"
SHA256 = "19397280d1e53f015004fe0ac38a33c4a7e5079015d929589fbbd5e79e36ca84"
COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.7.1:copy-dependencies"


@dataclass(frozen=True)
class Material:
    classes: Path  # our programs
    archive: Path  # sources
    library: Path  # their classes
    jmh: str  # a class path


def checked(path: Path, sha256: str) -> None:
    """Removes a file that is not the one that it should be."""
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != sha256:
        path.unlink()
        raise NotRun(f"{path.name} is not the file it should be: SHA-256 {found}, expected {sha256}")


def fetch(directory: Path = BUILT) -> Path:
    """The source archive."""
    archive = directory / ARCHIVE
    if not archive.exists():
        if shutil.which("mvn") is None:
            raise NotRun("there is no mvn, which fetches the source archive")
        run(["mvn", "-q", "-B", "-C", "-f", str(HERE / "pom.xml"), COPY, f"-DoutputDirectory={directory}"])
        if not archive.exists():
            raise NotRun(f"mvn brought no {ARCHIVE}")
    checked(archive, SHA256)
    return archive


def _classes(jdk: Path) -> Path:
    classes, sources = BUILT / "classes", HERE / "programs"
    if newest(classes.glob("*.class")) <= newest(sources.glob("*.java")):
        classes.mkdir(parents=True, exist_ok=True)
        run([str(jdk / "bin" / "javac"), "-d", str(classes), *map(str, sorted(sources.glob("*.java")))])
    return classes


def _library(jdk: Path, classes: Path, archive: Path) -> Path:
    library = BUILT / "library"
    if not library.exists():
        scratch = BUILT / "library.compiling"
        shutil.rmtree(scratch, ignore_errors=True)
        run([str(jdk / "bin" / "java"), "-cp", str(classes), "Compile", "prepare", str(archive), str(scratch)])
        scratch.rename(library)
    return library


def prepare(jdk: Path) -> Material:
    """Everything, made by the stock JDK."""
    BUILT.mkdir(parents=True, exist_ok=True)
    classes = _classes(jdk)
    archive = fetch()
    library = _library(jdk, classes, archive)
    try:
        jvm.build()
    except jvm.NotRun as reason:
        raise NotRun(str(reason)) from reason
    return Material(classes, archive, library, f"{jvm.BUILT}/classes:{jvm.BUILT}/dependency/*")
