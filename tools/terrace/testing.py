# SPDX-License-Identifier: MIT OR Apache-2.0
"""Builds presets, runs their tests, ends with one line that adds them up.

While the tests of a preset run, the next presets are built, with less weight: many tests wait more
than they work. Which tests a preset has is CMake's business (cmake/tests.cmake).
"""

import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from terrace import build
from terrace.captured import run_captured
from terrace.checkout import Checkout
from terrace.errors import TerraceError
from terrace.venv import tool

# release first: tests of the tool in other presets use build/release/libterrace.so.
PRESETS = ("release", "dev", "inject", "asan", "tsan", "musl")
QUICK_PRESETS = ("dev",)
SANITIZED = ("asan", "tsan")

# Tests with these labels have nothing to do with how the library is built: one preset is enough,
# the first of those that are tested.
ONCE = "^(models|install)$"

# Tests for each CPU at a time: some sleep, and those of a fixed duration share.
TESTS_PER_CPU = 2

_TIMEOUT_SECONDS = 900


def possible_presets() -> tuple[str, ...]:
    """All but that of musl where nothing compiles for it."""
    return tuple(p for p in PRESETS if p != "musl" or shutil.which("musl-gcc"))


@dataclass
class Result:
    """Counts of one preset (or check) and the names of what failed."""

    name: str
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    build_seconds: float = 0.0
    seconds: float = 0.0
    failures: list[str] = field(default_factory=list)

    def fail(self, what: str) -> None:
        self.failed += 1
        self.failures.append(what)


def options_for(preset: str, everything: bool = False) -> dict[str, str]:
    """Benchmarks are compiled once, where they would be run; `everything` is for --all."""
    options = {
        "TERRACE_TESTS": "ON",
        "TERRACE_EVERY_TEST": "ON" if everything else "OFF",
        "TERRACE_BENCH": "ON" if preset == "release" else "OFF",
    }
    if preset == "dev":
        options["TERRACE_HARDENED"] = "ON" if everything else "OFF"
    return options


def read_junit(path: Path, result: Result) -> None:
    """Adds what ctest reported; a test that is disabled or could not run counts as skipped."""
    for case in ET.parse(path).getroot().iter("testcase"):
        if case.find("failure") is not None or case.get("status") == "fail":
            result.fail(case.get("name", "?"))
        elif case.find("skipped") is not None or case.get("status") in ("notrun", "disabled"):
            result.skipped += 1
        else:
            result.passed += 1


def _heading(text: str) -> None:
    print(f"\n== {text}", flush=True)


def _fixed_addresses() -> list[str]:
    """The sanitizers' shadow does not fit every random layout: none where that is allowed."""
    prefix = ["setarch", "--addr-no-randomize"]
    try:
        done = run_captured([*prefix, "true"])
    except OSError:
        return []
    return prefix if done.returncode == 0 else []


def check_layers(checkout: Checkout) -> Result:
    """The edges between layers, before anything is compiled."""
    result = Result("layers")
    script = checkout.root / "tools" / "check_layers.py"
    if not script.exists():
        result.skipped += 1
        return result
    _heading("layers")
    done = subprocess.run(
        [sys.executable, str(script)], cwd=checkout.root, stdin=subprocess.DEVNULL, check=False
    )
    if done.returncode == 0:
        result.passed += 1
    else:
        result.fail("tools/check_layers.py")
    return result


def _run_ctest(checkout: Checkout, preset: str, choice: list[str], result: Result) -> None:
    junit = checkout.build / preset / "terrace-tests.xml"
    junit.unlink(missing_ok=True)
    command = [
        *(_fixed_addresses() if preset in SANITIZED else []),
        *(tool(checkout, "ctest"), "--preset", preset, "--output-on-failure", "--no-tests=ignore"),
        *("--parallel", str(TESTS_PER_CPU * build.available_cpus())),
        *("--timeout", str(_TIMEOUT_SECONDS)),
        *("--output-junit", str(junit)),
        *choice,
    ]
    status = subprocess.run(
        command, cwd=checkout.root, stdin=subprocess.DEVNULL, check=False
    ).returncode
    if junit.exists():
        read_junit(junit, result)
    if status != 0 and not result.failed:
        result.fail(f"ctest ended with status {status}")


def _build(checkout: Checkout, preset: str, gently: bool, everything: bool) -> float:
    """Seconds that it took."""
    began = time.monotonic()
    with checkout.locked(preset):
        build.build_preset(checkout, preset, options_for(preset, everything), gently)
    return time.monotonic() - began


def run_preset(checkout: Checkout, preset: str, built: Future[float], choice: list[str]) -> Result:
    """Tests a preset when it is built; a build that fails is one failure. `choice` is for ctest."""
    result = Result(preset)
    _heading(f"preset {preset}")
    try:
        result.build_seconds = built.result()
        began = time.monotonic()
        _run_ctest(checkout, preset, choice, result)
        result.seconds = time.monotonic() - began
    except TerraceError as error:
        print(error, flush=True)
        result.fail("build")
    return result


def print_summary(results: list[Result]) -> None:
    """A line for each preset, then the one that machines read."""
    _heading("summary")
    for r in results:
        print(
            f"{r.name:<10}{r.passed:>6} passed {r.failed:>4} failed {r.skipped:>4} skipped "
            f"{r.seconds:>8.1f} s, built in {r.build_seconds:.1f} s"
        )
    for r in results:
        for name in r.failures:
            print(f"FAILED {r.name}: {name}")
    passed, failed, skipped = (
        sum(getattr(r, key) for r in results) for key in ("passed", "failed", "skipped")
    )
    print(f"{passed} passed, {failed} failed, {skipped} skipped", flush=True)


def run_tests(
    checkout: Checkout,
    presets: tuple[str, ...],
    pattern: str | None = None,
    everything: bool = False,
) -> int:
    """Exit status 0 when something was tested and nothing failed."""
    results = [check_layers(checkout)]
    choice = ["--tests-regex", pattern] if pattern else []
    with ThreadPoolExecutor(1) as builder:
        builds = {
            preset: builder.submit(_build, checkout, preset, preset != presets[0], everything)
            for preset in presets
        }
        for preset, built in builds.items():
            once = [] if preset == presets[0] else ["--label-exclude", ONCE]
            results.append(run_preset(checkout, preset, built, [*choice, *once]))
    print_summary(results)
    tested = sum(r.passed for r in results[1:])
    return 0 if tested and not any(r.failed for r in results) else 1
