# SPDX-License-Identifier: MIT OR Apache-2.0
"""jtreg, HotSpot's tests and the libraries they load, from Debian's archive; one run of them."""

import re
import shutil
from pathlib import Path

from terrace import build
from terrace.captured import run_captured, run_tool
from terrace.checkout import Checkout
from terrace.errors import TerraceError
from terrace.jdk.session import ERROR, FAILED, PASSED, Session, java_environment
from terrace.jdk.source import fetch, fetch_for_tests, integration, queue, read_source, touched
from terrace.messages import say

# Below test/ of the source.
_PARTS = (
    *("hotspot/jtreg", "lib", "jtreg-ext", "jdk/TEST.ROOT", "jdk/jdk/jfr", "jdk/lib"),
    *("jdk/java/lang/invoke", "jdk/java/lang/reflect", "jdk/java/io/Serializable"),
)
_RESULTS = {"Passed": PASSED, "Failed": FAILED, "Error": ERROR}
_SUMMARY = re.compile(r"^(\S+)\s+(Passed|Failed|Error)\.")


def parse_summary(text: str) -> dict[str, str]:
    """Test -> result, of report/text/summary.txt; tests that were not selected are not there."""
    found = (_SUMMARY.match(line) for line in text.splitlines())
    return {match[1]: _RESULTS[match[2]] for match in found if match}


def read_ended(work: Path) -> dict[str, str]:
    """Test -> result, of the files of the tests that have ended, where no summary was made."""
    found = {}
    for path in work.rglob("*.jtr"):
        text = path.read_text(encoding="utf-8", errors="replace")
        lines = text.partition("#-----testresult-----\n")[2].partition("\n\n")[0].splitlines()
        values = dict(line.replace("\\", "").partition("=")[::2] for line in lines)
        result = _RESULTS.get(values.get("execStatus", "").partition(".")[0])
        if result is not None:
            found[values["test"]] = result
    return found


def test_list(checkout: Checkout, suite: str, tests: Path) -> tuple[list[str], list[str]]:
    """The words for jtreg: files, directories and groups below the unpacked test/.

    And the names of the tests that are left out (`-name`), as jtreg's report has them.
    """
    text = (integration(checkout) / f"{suite}.txt").read_text(encoding="utf-8")
    lines = [line.strip() for line in text.splitlines()]
    chosen = [line for line in lines if line and line[0] not in "#-"]
    words: list[str] = []
    for line in chosen:
        found = map(str, sorted(tests.glob(line))) if "*" in line else [f"{tests}/{line}"]
        words.extend(found)
    return words, [line[1:] for line in lines if line.startswith("-")]


def _program(checkout: Checkout) -> Path:
    """jtreg.jar, out of Debian's package, which need not be installed."""
    package = fetch_for_tests(checkout, "jtreg")
    tree = package.with_name("jtreg")
    if not tree.is_dir():
        scratch = package.with_name("jtreg.unpacking")
        shutil.rmtree(scratch, ignore_errors=True)
        run_tool(["dpkg", "-x", str(package), str(scratch)])
        scratch.rename(tree)
    return tree / "usr/share/jtreg/lib/jtreg.jar"


def _accept_this_jtreg(tests: Path) -> None:
    """The tests ask for jtreg 8, but 7.5.2 runs those that are chosen here."""
    for root in (tests / "hotspot/jtreg/TEST.ROOT", tests / "jdk/TEST.ROOT"):
        text = root.read_text(encoding="utf-8")
        text = re.sub(r"^requiredVersion=.*$", "requiredVersion=7.5.2+1", text, flags=re.MULTILINE)
        if root.parent.name == "jdk":  # of groups there are more than what is unpacked
            text = re.sub(r"^groups=.*$", "", text, flags=re.MULTILINE)
        root.write_text(text, encoding="utf-8")


# Tests that go on for a time that they are told: text in a file, and what it is replaced by.
_SHORTER = (
    ("hotspot/jtreg/gc/stress/gcbasher/TestGCBasherWithParallel.java", " 120000\n", " 15000\n"),
    ("hotspot/jtreg/gc/stress/gcbasher/TestGCBasherWithG1.java", " 120000\n", " 15000\n"),
    ("hotspot/jtreg/gc/stress/systemgc/TestSystemGCWithParallel.java", " 270\n", " 15\n"),
    ("hotspot/jtreg/gc/stress/systemgc/TestSystemGCWithG1.java", " 270\n", " 15\n"),
    (
        "jdk/jdk/jfr/event/gc/detailed/StressAllocationGCEvents.java",
        "SECONDS_TO_RUN = 60;",
        "SECONDS_TO_RUN = 15;",
    ),
)


def shorten(tests: Path) -> None:
    """So that a list can run seven times."""
    for name, text, shorter in _SHORTER:
        path = tests / name
        content = path.read_text(encoding="utf-8")
        if content.count(text) != 1:
            raise TerraceError(f"{path} has no single {text.strip()!r}")
        path.write_text(content.replace(text, shorter), encoding="utf-8")


def unpack_tests(checkout: Checkout, directory: Path) -> Path:
    """A copy of the tests that this jtreg accepts; they look for /test/lib from where test/ is."""
    tests = directory / "source" / "test"
    if all((tests / part).exists() for part in _PARTS):
        return tests
    shutil.rmtree(tests, ignore_errors=True)
    source = read_source(checkout)
    scratch = directory / "unpacking"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    say("unpacking HotSpot's tests")
    members = [f"{source.unpacked}/test/{part}" for part in _PARTS]
    run_tool(["tar", "-xf", str(fetch(checkout, source)), "-C", str(scratch), *members])
    unpacked = scratch / source.unpacked / "test"
    _accept_this_jtreg(unpacked)
    shorten(unpacked)
    tests.parent.mkdir(exist_ok=True)
    unpacked.rename(tests)
    shutil.rmtree(scratch)
    return tests


def add_tests_of_queue(checkout: Checkout, tests: Path) -> None:
    """The tests that patches of the queue bring, as they are now, among the unpacked ones."""
    for path in queue(checkout):
        files = [name for name, _ in touched(path.read_text(encoding="utf-8"))]
        if all(name.startswith("test/") for name in files):
            for name in files:
                shutil.rmtree((tests.parent / name).parent, ignore_errors=True)
            run_tool(["patch", "--batch", "-p1", "-d", str(tests.parent), "-i", str(path)])


def _native_sources(tests: Path, words: list[str]) -> list[Path]:
    """Of the libraries that chosen tests load: they are in the same directories."""
    chosen = [Path(word.partition(":")[0]) for word in words]
    places = {path if path.is_dir() else path.parent for path in chosen}
    gc = tests / "hotspot/jtreg/gc"
    places = {gc if path == tests / "hotspot/jtreg" else path for path in places}
    found = {p for place in places for p in place.rglob("lib*.c*")}
    return sorted(p for p in found if not {"shenandoah", "z"} & set(p.parts))


def _build_native(jdk: Path, tests: Path, words: list[str], directory: Path) -> Path:
    native = directory / "native"
    native.mkdir(exist_ok=True)
    libraries = (tests / "lib/native", tests / "lib/jdk/test/lib/jvmti")
    include = (jdk / "include", jdk / "include/linux", *libraries)
    for source in _native_sources(tests, words):
        target = native / f"{source.stem}.so"
        if not target.exists():
            compiler = "g++" if source.suffix == ".cpp" else "gcc"
            flags = ("-shared", "-fPIC", "-O1", "-w", *(f"-I{path}" for path in include))
            run_tool([compiler, *flags, "-o", str(target), str(source)])
    return native


class Runner:
    """jtreg with what it needs."""

    def __init__(self, session: Session, suite: str) -> None:
        unpacked = session.directory / "jtreg"
        self.directory = unpacked / suite
        self.stock = session.stock
        self.jar = _program(session.checkout)
        self.tests = unpack_tests(session.checkout, unpacked)
        add_tests_of_queue(session.checkout, self.tests)
        self.words, self.left_out = test_list(session.checkout, suite, self.tests)
        self.native = _build_native(session.stock, self.tests, self.words, unpacked)

    def run(self, jdk: Path, flags: tuple[str, ...], words: list[str]) -> dict[str, str]:
        """Test -> result."""
        out = self.directory / "out"
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir(parents=True)
        listing = out / "tests.txt"
        listing.write_text("\n".join(words), encoding="utf-8")
        left_out = out / "left-out.txt"  # in the format of a ProblemList
        lines = [f"{name} 0 generic-all\n" for name in self.left_out]
        left_out.write_text("".join(lines), encoding="utf-8")
        concurrency = build.available_cpus()
        command = [
            *(str(self.stock / "bin/java"), "-jar", str(self.jar), f"-jdk:{jdk}", "-agentvm"),
            *(f"-concurrency:{concurrency}", "-timeoutFactor:8", "-ignore:quiet"),
            *("-verbose:summary", "-retain:fail,error", f"-nativepath:{self.native}"),
            *(f"-w:{out}/work", f"-r:{out}/report", *(f"-vmoption:{flag}" for flag in flags)),
            *(f"-exclude:{left_out}", f"@{listing}"),
        ]
        log = out / "log"
        with log.open("w", encoding="utf-8") as output:
            run_captured(command, java_environment(), log=output)
        summary = out / "report/text/summary.txt"
        if not summary.exists():
            raise TerraceError(f"jtreg made no report:\n{log.read_text(errors='replace')[-2000:]}")
        return parse_summary(summary.read_text(encoding="utf-8"))

    def ended(self) -> dict[str, str]:
        """Test -> result, of a run that was interrupted."""
        return read_ended(self.directory / "out/work")

    def line(self, word: str) -> str:
        """The word as its list has it."""
        return word.removeprefix(f"{self.tests}/")

    def path(self, test: str) -> str:
        """The word for jtreg of a test of its summary."""
        name = test.partition("#")[0]
        root = "hotspot/jtreg" if (self.tests / "hotspot/jtreg" / name).exists() else "jdk"
        return f"{self.tests}/{root}/{test}"
