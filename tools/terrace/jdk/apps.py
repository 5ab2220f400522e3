# SPDX-License-Identifier: MIT OR Apache-2.0
"""`terrace jdk test --suite apps`: Lucene, H2 and the Scala compiler give the same on both JVMs."""

import hashlib
import shutil
import zipfile
from pathlib import Path

from terrace.captured import run_tool
from terrace.checkout import Checkout
from terrace.errors import TerraceError
from terrace.jdk.programs import Program, compare
from terrace.jdk.session import FIVE, Session, Setting, Suite
from terrace.jdk.source import integration
from terrace.messages import say

_SOURCES = "scala-parallel-collections_2.13-1.0.4-sources.jar"
SETTINGS = (Setting("off", patched=()), *FIVE)


def wrong_jars(directory: Path, listing: str) -> list[str]:
    """Those of 'SHA-256  NAME' that are missing or have other contents."""
    rows = [line.split() for line in listing.splitlines() if line and not line.startswith("#")]
    wrong = []
    for sha256, name in rows:
        file = directory / name
        if not file.exists() or hashlib.sha256(file.read_bytes()).hexdigest() != sha256:
            wrong.append(name)
    return wrong


def fetch(checkout: Checkout, directory: Path) -> Path:
    """What the pom names, by Maven, checked."""
    jars = directory / "jars"
    apps = integration(checkout) / "apps"
    listing = (apps / "sha256.txt").read_text(encoding="utf-8")
    if not wrong_jars(jars, listing):
        return jars
    if shutil.which("mvn") is None:
        raise TerraceError("Maven (mvn) is needed to fetch the applications")
    say("fetching the applications (Maven, 31 MB)")
    goal = ("dependency:copy-dependencies", f"-DoutputDirectory={jars}")
    run_tool(["mvn", "-q", "-B", "-f", str(apps / "pom.xml"), *goal])
    wrong = wrong_jars(jars, listing)
    if wrong:
        raise TerraceError(f"{jars}: not the files they should be: {', '.join(wrong)}")
    return jars


def _scala(jars: Path, directory: Path, classpath: str) -> Program:
    """The compiler compiles a library; its class files are the result."""
    sources = directory / "scala"
    if not sources.is_dir():
        scratch = directory / "unzipping"
        shutil.rmtree(scratch, ignore_errors=True)
        with zipfile.ZipFile(jars / _SOURCES) as archive:
            archive.extractall(scratch, [n for n in archive.namelist() if n.endswith(".scala")])
        scratch.rename(sources)
    listing = directory / "scala.txt"
    listing.write_text("\n".join(str(p) for p in sorted(sources.rglob("*.scala"))), "utf-8")
    output = directory / "scala-classes"
    options = ("-nowarn", "-usejavacp", "-d", str(output), f"@{listing}")
    words = ("-cp", classpath, "scala.tools.nsc.Main", *options)
    return Program("Scala's compiler", words, output, None, ("-Xmx768m", "-Xmn64m"))


def programs(checkout: Checkout, directory: Path, stock: Path) -> list[Program]:
    """Drivers are compiled by the installed JDK."""
    directory.mkdir(parents=True, exist_ok=True)
    jars = fetch(checkout, directory)
    classes = directory / "classes"
    classpath = ":".join([str(classes), *map(str, sorted(jars.glob("*.jar")))])
    sources = sorted((integration(checkout) / "apps").glob("*.java"))
    run_tool([str(stock / "bin/javac"), "-cp", classpath, "-d", str(classes), *map(str, sources)])
    return [
        Program("Lucene's indexing", ("-cp", classpath, "Indexing", "8", "6000")),
        Program("H2's orders", ("-cp", classpath, "Orders", "8", "1500")),
        _scala(jars, directory, classpath),
    ]


def run(session: Session) -> Suite:
    """Each application in each of the five settings, and without the buffers."""
    suite = Suite("apps", session.level)
    chosen = programs(session.checkout, session.directory / "apps", session.stock)
    return compare(session, suite, chosen, SETTINGS)
