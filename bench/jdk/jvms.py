# SPDX-License-Identifier: MIT OR Apache-2.0
"""The two JVMs, which flags each of them knows, and how flags are written."""

import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from report import ROOT

sys.path.append(str(ROOT / "tools"))

from terrace import checkout, errors
from terrace.jdk import installed
from terrace.jdk import source as jdk_source

UNLOCK = ("-XX:+UnlockExperimentalVMOptions", "-XX:+UnlockDiagnosticVMOptions")
ON = (*UNLOCK, "-XX:+UseHierarchicalAllocBuffers")
CORE = (*ON, "-XX:HABAssociation=core")  # objects by core
AUTO = (*ON, "-XX:HABAssociation=auto")
FLIP = (*ON, "-XX:HABAssociation=flip")
KEEP_RESERVE = (*ON, "-XX:+HABKeepPrefetchReserve")
KEPT = "on, reserve kept"  # what the buffers do by themselves; the rest of "on" is C2's prefetch reserve, which goes with them
GROWING, NONE = "growing", "none"  # instead of a size of TLABs
STOCK, PATCHED = "stock", "patched"


@dataclass(frozen=True)
class Jvm:
    home: Path
    version: str
    flags: frozenset[str]  # those that it knows

    @property
    def java(self) -> str:
        return str(self.home / "bin" / "java")

    def unknown(self, flags: Sequence[str]) -> list[str]:
        """The names of those -XX flags that it does not know."""
        names = (name_of(flag) for flag in flags)
        return sorted({name for name in names if name and name not in self.flags})


def name_of(flag: str) -> str:
    """HABLevels of -XX:HABLevels=core; nothing if it is no -XX flag."""
    found = re.match(r"-XX:[+-]?(\w+)", flag)
    return found[1] if found else ""


def flags_of(text: str) -> frozenset[str]:
    """The names in the output of -XX:+PrintFlagsFinal."""
    return frozenset(re.findall(r"^\s*\w+ (\w+)\s+:?= ", text, re.MULTILINE))


def probe(home: Path) -> Jvm:
    command = [str(home / "bin" / "java"), *UNLOCK, "-XX:+PrintFlagsFinal", "-version"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise errors.TerraceError(f"{command[0]}: {error.strerror}") from None
    if done.returncode != 0:
        raise errors.TerraceError(f"{command[0]}: {done.stderr.strip()[-200:]}")
    return Jvm(home, (done.stderr.strip().splitlines() or [""])[-1], flags_of(done.stdout))


def stock_home(chosen: Path | None) -> Path:
    here = checkout.find_checkout()
    assert here is not None
    return chosen or installed.find_jdk(jdk_source.read_source(here))


def patched_home(chosen: Path | None) -> Path:
    """TerraceError if there is none."""
    here = checkout.find_checkout()
    assert here is not None
    home = chosen or jdk_source.work_directory(here) / "jdk-release"
    if not (home / "bin" / "java").exists():
        raise errors.TerraceError(f"there is no patched JDK in {home}: ./terrace jdk build makes one")
    return home


def heap(young: str, most: str, collector: str = "Parallel") -> tuple[str, ...]:
    """A heap and a young space that do not change."""
    adaptive = ("-XX:-UseAdaptiveSizePolicy",) if collector == "Parallel" else ()
    return (f"-XX:+Use{collector}GC", f"-Xms{most}", f"-Xmx{most}", f"-Xmn{young}", *adaptive)


def tlab(size: str) -> tuple[str, ...]:
    """All TLABs of this size, "growing" as HotSpot does by itself, or "none"."""
    if size == GROWING:
        return ()
    if size == NONE:
        return ("-XX:-UseTLAB",)
    smallest = ("-XX:MinTLABSize=1k",) if size == "1K" else ()
    return ("-XX:-ResizeTLAB", *smallest, f"-XX:TLABSize={size.lower()}")


def clab(size: str) -> tuple[str, ...]:
    """Buffers of the cores of this size, however small the young space is."""
    return (*ON, f"-XX:HABCoreSize={size.lower()}", "-XX:HABMaxEdenPercent=0")


def plab(size: str) -> tuple[str, ...]:
    """Buffers of the last-level caches only, as above."""
    return (*ON, "-XX:HABLevels=llc", f"-XX:HABCacheSize={size.lower()}", "-XX:HABMaxEdenPercent=0")
