# SPDX-License-Identifier: MIT OR Apache-2.0
"""Configures and builds presets with CMake; tells in a millisecond if the library is up to date."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from terrace.captured import run_captured, said, watched
from terrace.checkout import Checkout
from terrace.errors import TerraceError
from terrace.messages import progress, say
from terrace.venv import tool

# What the library is made from; a change in any other place does not make it out of date.
SOURCES = ("CMakeLists.txt", "CMakePresets.json", "cmake", "include", "src")


def available_cpus() -> int:
    return len(os.sched_getaffinity(0))


def _entries(path: str) -> Iterator[tuple[str, int, int]]:
    with os.scandir(path) as directory:
        for entry in directory:
            if entry.is_dir(follow_symlinks=False):
                yield from _entries(entry.path)
            else:
                status = entry.stat()
                yield entry.path, status.st_mtime_ns, status.st_size


def fingerprint(root: Path) -> str:
    """A line for each source of the library: differs when one was edited, added or removed."""
    found: list[tuple[str, int, int]] = []
    for name in SOURCES:
        path = os.path.join(root, name)
        if os.path.isdir(path):
            found.extend(_entries(path))
        elif os.path.exists(path):
            status = os.stat(path)
            found.append((path, status.st_mtime_ns, status.st_size))
    return "".join(f"{path} {modified} {size}\n" for path, modified, size in sorted(found))


def _stamp(checkout: Checkout) -> Path:
    return checkout.build / "release" / "terrace-sources.stamp"


def is_up_to_date(checkout: Checkout) -> bool:
    """Whether build/release/libterrace.so was built from the sources as they are."""
    try:
        return checkout.library.exists() and _stamp(checkout).read_text(
            encoding="utf-8"
        ) == fingerprint(checkout.root)
    except OSError:
        return False


def _belongs_elsewhere(directory: Path, root: Path) -> bool:
    """A build directory that was moved along with its checkout has to be configured afresh."""
    try:
        cache = (directory / "CMakeCache.txt").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    home = re.search(r"^CMAKE_HOME_DIRECTORY:INTERNAL=(.*)$", cache, re.MULTILINE)
    return home is None or Path(home.group(1)).resolve() != root.resolve()


def configure(checkout: Checkout, preset: str, options: dict[str, str]) -> None:
    """Runs `cmake --preset`."""
    command = [tool(checkout, "cmake"), "--preset", preset]
    if _belongs_elsewhere(checkout.build / preset, checkout.root):
        command.append("--fresh")
    command += [f"-D{key}={value}" for key, value in options.items()]
    done = run_captured(command, cwd=checkout.root)
    if done.returncode != 0:
        raise TerraceError(f"configuring preset {preset} failed:\n{said(done)}")


def _failed_part(lines: list[str]) -> str:
    """From ninja's first FAILED on: the rest is noise."""
    first = next(
        (i for i, line in enumerate(lines) if line.startswith("FAILED:")), max(len(lines) - 30, 0)
    )
    return "".join(lines[first : first + 200]).rstrip()


def compile_targets(
    checkout: Checkout, preset: str, targets: tuple[str, ...] = (), gently: bool = False
) -> None:
    """Runs `cmake --build` under a progress bar; all it says stays in terrace-build.log there.

    `gently` is beside something else: that comes first on the CPUs, and on the terminal.
    """
    directory = checkout.build / preset
    command = [
        *(("nice", "-n", "5") if gently else ()),
        tool(checkout, "cmake"),
        "--build",
        str(directory),
        "--parallel",
        str(available_cpus()),
    ]
    if targets:
        command += ["--target", *targets]
    environment = {**os.environ, "NINJA_STATUS": "[%f/%t] ", "CLICOLOR_FORCE": "0"}
    lines: list[str] = []
    with (
        progress(
            f"building {preset}" if not targets else f"building {preset} ({' '.join(targets)})",
            plain=gently,
        ) as step,
        (directory / "terrace-build.log").open("w", encoding="utf-8") as log,
        watched(command, environment, checkout.root) as process,
    ):
        for line in process.stdout or ():
            lines.append(line)
            log.write(line)
            status = re.match(r"\[(\d+)/(\d+)\] (.*)", line)
            if status:
                step.update(int(status.group(1)), int(status.group(2)), status.group(3))
        if process.wait() == 0:
            step.finish()
    if process.returncode != 0:
        raise TerraceError(f"building preset {preset} failed:\n{_failed_part(lines)}")


def build_preset(
    checkout: Checkout, preset: str, options: dict[str, str], gently: bool = False
) -> None:
    """Configures with the options and builds everything; `gently` as in compile_targets()."""
    before = fingerprint(checkout.root)
    configure(checkout, preset, options)
    compile_targets(checkout, preset, gently=gently)
    if preset == "release":
        # The state before the build: a file edited meanwhile counts as changed.
        _stamp(checkout).write_text(before, encoding="utf-8")


def build_library(checkout: Checkout) -> Path:
    """Builds what `run` preloads, and only that."""
    with checkout.locked():
        if is_up_to_date(checkout):
            return checkout.library
        before = fingerprint(checkout.root)
        directory = checkout.build / "release"
        if not checkout.library.exists():
            say("building the library for the first time (build/release)")
        if not (directory / "build.ninja").exists() or _belongs_elsewhere(directory, checkout.root):
            configure(checkout, "release", {"TERRACE_TESTS": "OFF", "TERRACE_BENCH": "OFF"})
        compile_targets(checkout, "release", ("terrace_shared",))
        _stamp(checkout).write_text(before, encoding="utf-8")
        return checkout.library
