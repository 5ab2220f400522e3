# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the suites of `terrace jdk test` share: the two JDKs, settings, results, files to fetch."""

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from terrace.captured import run_captured
from terrace.checkout import Checkout
from terrace.errors import TerraceError
from terrace.jdk.source import work_directory
from terrace.messages import say

HAB = ("-XX:+UnlockExperimentalVMOptions", "-XX:+UseHierarchicalAllocBuffers")
VERIFY = ("-XX:+UnlockDiagnosticVMOptions", "-XX:+VerifyBeforeGC", "-XX:+VerifyAfterGC")
TLAB_4K = ("-XX:-ResizeTLAB", "-XX:TLABSize=4k")

STOCK = "stock"  # the name of what the others are compared with
PASSED, FAILED, ERROR, NOT_RUN = "passed", "failed", "error", "not run"


def is_unlike(of_stock: str, result: str) -> bool:
    """Flags deselect tests: one that only the patched JDK ran, and that passed, does not differ."""
    return result not in (NOT_RUN, of_stock) and (of_stock, result) != (NOT_RUN, PASSED)


@dataclass(frozen=True)
class Setting:
    """Flags of one run of the patched JVM; `stock` are those that the installed one gets, too."""

    name: str
    stock: tuple[str, ...] = ()
    patched: tuple[str, ...] = HAB
    heap: tuple[str, ...] = ("-Xmx512m", "-Xmn32m")


# The five with which HotSpot's own tests and applications run.
FIVE = (
    Setting("on"),
    Setting("core+llc+node, TLABs of 4 KiB", TLAB_4K, (*HAB, "-XX:HABLevels=core+llc+node")),
    Setting("restartable", (), (*HAB, "-XX:+HABUseRestartableSequences")),
    Setting("by core", (), (*HAB, "-XX:HABAssociation=core")),
    Setting("flip", (), (*HAB, "-XX:HABAssociation=flip")),
)


@dataclass(frozen=True)
class Session:
    """One `terrace jdk test`."""

    checkout: Checkout
    stock: Path
    image: Path
    level: str = "release"
    patterns: tuple[str, ...] = ()  # only what has one of them in its name
    seconds: int = 600  # of the stress, and of each setting of fuzz
    first: int = 0  # batch of fuzz

    @property
    def directory(self) -> Path:
        """Where the suites put what they make."""
        return work_directory(self.checkout) / "test"

    def wants(self, name: str) -> bool:
        return not self.patterns or any(pattern in name for pattern in self.patterns)


@dataclass
class Suite:
    """What a suite found: a result of each test in each setting."""

    name: str
    level: str
    results: dict[str, dict[str, str]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0
    interrupted: bool = False  # what had ended by then is there

    def put(self, setting: str, test: str, result: str) -> None:
        self.results.setdefault(setting, {})[test] = result

    def differences(self) -> list[tuple[str, str, str, str]]:
        """Setting, test, stock's result, this one's."""
        stock = self.results.get(STOCK, {})
        return [
            (setting, test, stock.get(test, NOT_RUN), result)
            for setting, results in self.results.items()
            for test, result in results.items()
            if is_unlike(stock.get(test, NOT_RUN), result)
        ]

    def print_setting(self, name: str) -> None:
        """While it goes on."""
        results = list(self.results[name].values())
        counts = ", ".join(f"{results.count(r)} {r}" for r in (PASSED, FAILED, ERROR, NOT_RUN))
        print(f"{self.name}, {name}: {counts}", flush=True)

    def print_counts(self) -> None:
        results = [r for name, rs in self.results.items() if name != STOCK for r in rs.values()]
        passed, different = results.count(PASSED), len(self.differences())
        print(f"{self.name}: {passed} passed, {different} unlike the installed JDK", flush=True)

    @property
    def status(self) -> int:
        """0: something ran in the settings, and as on the installed JDK."""
        ran = [r for setting, rs in self.results.items() if setting != STOCK for r in rs.values()]
        return 0 if PASSED in ran and not self.differences() else 1


def java_environment() -> dict[str, str]:
    """Without flags that the JVMs would take from there."""
    return {k: v for k, v in os.environ.items() if k != "JAVA_TOOL_OPTIONS"}


def flag_name(option: str) -> str:
    """'UseX' of -XX:+UseX, 'X' of -XX:X=1."""
    return option.removeprefix("-XX:").lstrip("+-").partition("=")[0]


def known_flags(jdk: Path) -> set[str]:
    """All flags of a JVM, those that have to be unlocked, too."""
    unlock = ("-XX:+UnlockExperimentalVMOptions", "-XX:+UnlockDiagnosticVMOptions")
    command = [str(jdk / "bin" / "java"), *unlock, "-XX:+PrintFlagsFinal", "-version"]
    try:
        done = run_captured(command)
    except OSError as error:
        raise TerraceError(f"{command[0]}: {error.strerror}") from None
    if done.returncode != 0:
        raise TerraceError(f"{jdk} does not start:\n{done.stdout}{done.stderr}")
    return {words[1] for line in done.stdout.splitlines() if len(words := line.split()) > 3}


def usable(settings: Iterable[Setting], jdk: Path, suite: Suite) -> list[Setting]:
    """Those of which the JDK knows all flags; of each other one a line says why it is left out."""
    known = known_flags(jdk)
    kept = []
    for setting in settings:
        options = (o for o in (*setting.stock, *setting.patched) if o.startswith("-XX:"))
        unknown = [name for name in map(flag_name, options) if name not in known]
        if unknown:
            note = f"{setting.name}: left out, the JDK does not know {', '.join(unknown)}"
            suite.notes.append(note)
            say(note, always=True)
        else:
            kept.append(setting)
    return kept
