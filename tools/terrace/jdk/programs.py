# SPDX-License-Identifier: MIT OR Apache-2.0
"""`terrace jdk test`: the same programs on the installed and on the patched JVM give the same."""

import hashlib
import shutil
import subprocess
import tempfile
import time
import zipfile
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from terrace.captured import run_captured, run_tool, said
from terrace.checkout import Checkout
from terrace.jdk.session import (
    FAILED,
    HAB,
    PASSED,
    STOCK,
    TLAB_4K,
    VERIFY,
    Session,
    Setting,
    Suite,
    java_environment,
    usable,
)
from terrace.jdk.source import integration, work_directory
from terrace.messages import say

_LONGEST = 900  # seconds for one run: beyond, it hangs


# Each on all collectors. `off` first: what is wrong there is not the buffers' fault.
SETTINGS = (
    Setting("off", patched=()),
    Setting("on"),
    Setting("verified", VERIFY),
    Setting("verified, TLABs of 4 KiB", (*VERIFY, *TLAB_4K)),
    Setting("verified, no TLABs", (*VERIFY, "-XX:-UseTLAB")),
    Setting("core+llc+node, TLABs of 4 KiB", TLAB_4K, (*HAB, "-XX:HABLevels=core+llc+node")),
    Setting("llc, verified", VERIFY, (*HAB, "-XX:HABLevels=llc")),
    Setting("buffers of 16 KiB", TLAB_4K, (*HAB, "-XX:HABCoreSize=16k")),
    Setting(
        "buffers larger than the share, verified",
        VERIFY,
        (*HAB, "-XX:HABCoreSize=8m", "-XX:HABMaxEdenPercent=0"),
    ),
    Setting("a young space of 2 MiB", (), HAB, ("-Xmx512m", "-Xmn2m")),
    Setting(
        "restartable, verified, TLABs of 4 KiB",
        (*VERIFY, *TLAB_4K),
        (*HAB, "-XX:+HABUseRestartableSequences"),
    ),
    Setting("by core, verified", VERIFY, (*HAB, "-XX:HABAssociation=core")),
    Setting("by core, no TLABs", ("-XX:-UseTLAB",), (*HAB, "-XX:HABAssociation=core")),
    Setting("flip, verified", VERIFY, (*HAB, "-XX:HABAssociation=flip")),
    Setting("auto, verified", VERIFY, (*HAB, "-XX:HABAssociation=auto")),
    Setting("ZeroTLAB", ("-XX:+ZeroTLAB",)),
    # HotSpot turns these two off, with a line, where there is one node or no huge page is reserved.
    Setting(
        "NUMA, all levels, verified",
        (*VERIFY, *TLAB_4K, "-XX:+UseNUMA"),
        (*HAB, "-XX:HABLevels=core+llc+node"),
    ),
    Setting("large pages, verified", (*VERIFY, "-XX:+UseLargePages", "-Xlog:pagesize=off")),
    Setting("transparent huge pages, verified", (*VERIFY, "-XX:+UseTransparentHugePages")),
    Setting("objects aligned to 16, verified", (*VERIFY, "-XX:ObjectAlignmentInBytes=16")),
    Setting("compact headers, verified", (*VERIFY, "-XX:+UseCompactObjectHeaders")),
    Setting(
        "compact headers, by core, verified",
        (*VERIFY, "-XX:+UseCompactObjectHeaders"),
        (*HAB, "-XX:HABAssociation=core"),
    ),
)
COLLECTORS = ("Parallel", "G1", "Serial")


@dataclass(frozen=True)
class Program:
    """The words after the JVM's flags; a directory whose files are part of the result."""

    name: str
    words: tuple[str, ...]
    output: Path | None = None
    settings: tuple[str, ...] | None = None  # None: all
    heap: tuple[str, ...] = ()  # instead of the setting's


# The installed JVM's results in this session.
_EXPECTED: dict[tuple[Program, tuple[str, ...]], str] = {}


def _tree_digest(directory: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(p for p in directory.rglob("*") if p.is_file()):
        digest.update(str(path.relative_to(directory)).encode() + path.read_bytes())
    return digest.hexdigest()


def run_once(jdk: Path, flags: tuple[str, ...], program: Program) -> str:
    """Its output and a digest of its files; what went wrong begins with 'failed'."""
    if program.output is not None:
        shutil.rmtree(program.output, ignore_errors=True)
        program.output.mkdir(parents=True)
    command = [str(jdk / "bin" / "java"), *flags, *program.words]
    try:
        # Where a JVM that ends with an error puts its report.
        cwd = tempfile.gettempdir()
        done = run_captured(command, java_environment(), timeout=_LONGEST, cwd=cwd)
    except subprocess.TimeoutExpired:
        return f"failed: not done after {_LONGEST} s"
    if done.returncode != 0:
        tail = "\n".join(said(done).splitlines()[-24:])
        return f"failed: exit status {done.returncode}\n{tail}"
    files = _tree_digest(program.output) if program.output is not None else ""
    return done.stdout + files


def _javac(jdk: Path, directory: Path) -> Program:
    """The JDK's compiler compiles itself, from the installed JDK's src.zip."""
    sources = directory / "jdk.compiler"
    if not sources.is_dir():
        scratch = directory / "unzipping"
        shutil.rmtree(scratch, ignore_errors=True)
        with zipfile.ZipFile(jdk / "lib" / "src.zip") as archive:
            names = [n for n in archive.namelist() if n.startswith("jdk.compiler/")]
            archive.extractall(scratch, names)
        (scratch / "jdk.compiler").rename(sources)
        scratch.rmdir()
    listing = directory / "sources.txt"
    listing.write_text("\n".join(str(p) for p in sorted(sources.rglob("*.java"))), "utf-8")
    output = directory / "classes"
    main = ("-m", "jdk.compiler/com.sun.tools.javac.Main")
    options = ("-nowarn", "-proc:none", "-XDignore.symbol.file", "-d", str(output))
    words = (*main, *options, "--patch-module", f"jdk.compiler={sources}", f"@{listing}")
    few = ("off", "on", "verified, TLABs of 4 KiB", "restartable, verified, TLABs of 4 KiB")
    return Program("javac", words, output, few, ("-Xmx1g", "-Xmn128m"))


def compile_programs(checkout: Checkout, jdk: Path) -> Path:
    """Where their classes are."""
    directory = work_directory(checkout) / "test"
    directory.mkdir(parents=True, exist_ok=True)
    names = ("Churn", "Kinds", "Kept", "Ways", "WaysSites")
    sources = [integration(checkout) / "programs" / f"{name}.java" for name in names]
    classes = directory / "programs"
    run_tool([str(jdk / "bin" / "javac"), "-d", str(classes), *map(str, sources)])
    return classes


def programs(checkout: Checkout, jdk: Path) -> list[Program]:
    """Churn with few and many threads, objects of all kinds, the compiler if it has its sources."""
    directory = work_directory(checkout) / "test"
    classes = compile_programs(checkout, jdk)
    few = Program("churn, 8 threads", ("-cp", str(classes), "Churn", "8", "4000"))
    many = Program("churn, 200 threads", ("-cp", str(classes), "Churn", "200", "150"))
    kinds = Program("kinds, 20 threads", ("-cp", str(classes), "Kinds", "20", "150"))
    interpreted = Program(
        "kinds, interpreted",
        ("-Xint", "-cp", str(classes), "Kinds", "8", "100"),
        settings=(
            "on",
            "by core, verified",
            "flip, verified",
            "compact headers, by core, verified",
        ),
    )
    compiler = [_javac(jdk, directory)] if (jdk / "lib" / "src.zip").exists() else []
    if not compiler:
        say(f"{jdk} has no lib/src.zip: javac is left out")
    return [few, many, kinds, interpreted, *compiler]


def _compare(expected: str, found: str) -> str:
    """What is wrong, "" if nothing."""
    if expected.startswith("failed"):
        return f"the installed JVM {expected}"
    if found.startswith("failed"):
        return found
    return "" if found == expected else f"another result:\n{found}instead of\n{expected}"


def _run(session: Session, program: Program, setting: Setting, flags: tuple[str, ...]) -> str:
    """What is wrong in a setting, "" if nothing; the installed JVM's result is asked for once."""
    if (program, flags) not in _EXPECTED:
        _EXPECTED[program, flags] = run_once(session.stock, flags, program)
    found = run_once(session.image, (*flags, *setting.patched), program)
    return _compare(_EXPECTED[program, flags], found)


def compare(
    session: Session, suite: Suite, chosen: list[Program], settings: tuple[Setting, ...]
) -> Suite:
    """Prints a line for each run, and what failed in full."""
    kept = usable(settings, session.image, suite)
    _EXPECTED.clear()
    began = time.monotonic()
    for program, collector, setting in product(chosen, COLLECTORS, kept):
        test = f"{program.name}, {collector}"
        name = f"{test}, {setting.name}"
        left_out = program.settings is not None and setting.name not in program.settings
        if left_out or not session.wants(name):
            continue
        start = time.monotonic()
        flags = (f"-XX:+Use{collector}GC", *(program.heap or setting.heap), *setting.stock)
        wrong = _run(session, program, setting, flags)
        seconds = time.monotonic() - start
        print(f"{'FAILED' if wrong else 'ok':7} {name} ({seconds:.1f} s)", flush=True)
        if wrong:
            print(wrong, flush=True)
        suite.put(STOCK, test, PASSED)
        suite.put(setting.name, test, FAILED if wrong else PASSED)
    suite.seconds = time.monotonic() - began
    suite.print_counts()
    return suite


def run(session: Session) -> Suite:
    """The programs."""
    suite = Suite("programs", session.level)
    return compare(session, suite, programs(session.checkout, session.stock), SETTINGS)
