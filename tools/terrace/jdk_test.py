# SPDX-License-Identifier: MIT OR Apache-2.0
"""`terrace jdk test`: the same programs on the installed and on the patched JVM give the same."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path

from terrace.checkout import Checkout
from terrace.errors import TerraceError
from terrace.jdk_source import integration, work_directory
from terrace.messages import say

HAB = ("-XX:+UnlockExperimentalVMOptions", "-XX:+UseHierarchicalAllocBuffers")
VERIFY = ("-XX:+UnlockDiagnosticVMOptions", "-XX:+VerifyBeforeGC", "-XX:+VerifyAfterGC")
TLAB_4K = ("-XX:-ResizeTLAB", "-XX:TLABSize=4k")
_LONGEST = 900  # seconds for one run: beyond, it hangs


@dataclass(frozen=True)
class Setting:
    """Flags of one run of the patched JVM; `stock` are those that the installed one gets, too."""

    name: str
    stock: tuple[str, ...] = ()
    patched: tuple[str, ...] = HAB
    heap: tuple[str, ...] = ("-Xmx512m", "-Xmn32m")


# Each on Parallel and on G1. `off` first: what is wrong there is not the buffers' fault.
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
    Setting("ZeroTLAB", ("-XX:+ZeroTLAB",)),
    Setting("objects aligned to 16, verified", (*VERIFY, "-XX:ObjectAlignmentInBytes=16")),
    Setting("compact headers, verified", (*VERIFY, "-XX:+UseCompactObjectHeaders")),
)
COLLECTORS = ("Parallel", "G1")


@dataclass(frozen=True)
class Program:
    """The words after the JVM's flags; a directory whose files are part of the result."""

    name: str
    words: tuple[str, ...]
    output: Path | None = None
    settings: tuple[str, ...] | None = None  # None: all
    heap: tuple[str, ...] = ()  # instead of the setting's


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
    environment = {k: v for k, v in os.environ.items() if k != "JAVA_TOOL_OPTIONS"}
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            stdin=subprocess.DEVNULL,
            timeout=_LONGEST,
            env=environment,
        )
    except subprocess.TimeoutExpired:
        return f"failed: not done after {_LONGEST} s"
    if done.returncode != 0:
        tail = "\n".join((done.stdout + done.stderr).splitlines()[-12:])
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


def programs(checkout: Checkout, jdk: Path) -> list[Program]:
    """Churn with few and with many threads, and the compiler if its sources are there."""
    directory = work_directory(checkout) / "test"
    directory.mkdir(parents=True, exist_ok=True)
    source = integration(checkout) / "programs" / "Churn.java"
    classes = directory / "churn"
    command = [str(jdk / "bin" / "javac"), "-d", str(classes), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise TerraceError(f"javac {source}:\n{done.stderr}")
    few = Program("churn, 8 threads", ("-cp", str(classes), "Churn", "8", "4000"))
    many = Program("churn, 200 threads", ("-cp", str(classes), "Churn", "200", "150"))
    compiler = [_javac(jdk, directory)] if (jdk / "lib" / "src.zip").exists() else []
    if not compiler:
        say(f"{jdk} has no lib/src.zip: javac is left out")
    return [few, many, *compiler]


def _compare(expected: str, found: str) -> str:
    """What is wrong, "" if nothing."""
    if expected.startswith("failed"):
        return f"the installed JVM {expected}"
    if found.startswith("failed"):
        return found
    return "" if found == expected else f"another result:\n{found}instead of\n{expected}"


def test(checkout: Checkout, jdk: Path, image: Path, pattern: str | None) -> int:
    """Prints a line for each run, and what failed in full; exit status 0 when none did."""
    passed, failed = 0, 0
    for program in programs(checkout, jdk):
        for collector in COLLECTORS:
            for setting in SETTINGS:
                name = f"{program.name}, {collector}, {setting.name}"
                if program.settings is not None and setting.name not in program.settings:
                    continue
                if pattern is not None and pattern not in name:
                    continue
                start = time.monotonic()
                flags = (
                    f"-XX:+Use{collector}GC",
                    *(program.heap or setting.heap),
                    *setting.stock,
                )
                expected = run_once(jdk, flags, program)
                wrong = _compare(expected, run_once(image, (*flags, *setting.patched), program))
                seconds = time.monotonic() - start
                print(f"{'FAILED' if wrong else 'ok':7} {name} ({seconds:.1f} s)", flush=True)
                if wrong:
                    failed += 1
                    print(wrong, flush=True)
                else:
                    passed += 1
    print(f"{passed} passed, {failed} failed")
    return 0 if failed == 0 and passed > 0 else 1
