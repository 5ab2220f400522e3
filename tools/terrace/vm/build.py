# SPDX-License-Identifier: MIT OR Apache-2.0
"""The programs that run in guests, for x86-64 and cross-compiled for arm64."""

import json
from pathlib import Path
from typing import Any

from terrace import build
from terrace.captured import run_tool
from terrace.checkout import Checkout
from terrace.errors import TerraceError
from terrace.messages import say
from terrace.venv import tool
from terrace.vm.tests import FOLDERS

# Debian's source of GoogleTest: the packaged library is the host's ISA only.
_GOOGLETEST = Path("/usr/src/googletest")

_SOURCES = ("--", ".", ":!*.md")


def objcopy(isa: str) -> str:
    return "objcopy" if isa == "x86_64" else f"{isa}-linux-gnu-objcopy"


def _cmake(checkout: Checkout, *words: str) -> None:
    run_tool([tool(checkout, "cmake"), *words], cwd=str(checkout.root))


def _compile(checkout: Checkout, directory: Path, *targets: str) -> None:
    jobs = str(build.available_cpus())
    _cmake(checkout, "--build", str(directory), "-j", jobs, "--target", *targets)


def _toolchain(checkout: Checkout, isa: str) -> list[str]:
    return ["--toolchain", str(checkout.root / "cmake" / f"{isa}-linux-gnu.cmake")]


def _cross_googletest(checkout: Checkout, isa: str) -> Path:
    """Builds and installs it under build/vm; where its CMake package is."""
    directory = checkout.build / "vm" / f"googletest-{isa}"
    root = directory / "root"
    found = list(root.rglob("GTestConfig.cmake"))
    if not found:
        if not _GOOGLETEST.is_dir():
            raise TerraceError("googletest is missing (Debian's name), which arm64 guests need")
        options = ("-DCMAKE_BUILD_TYPE=Release", "-DBUILD_GMOCK=OFF")
        place = (f"-DCMAKE_INSTALL_PREFIX={root}", "-G", "Ninja", *_toolchain(checkout, isa))
        _cmake(checkout, "-S", str(_GOOGLETEST), "-B", str(directory), *options, *place)
        _compile(checkout, directory, "install")
        found = list(root.rglob("GTestConfig.cmake"))
    return found[0].parent


def build_programs(checkout: Checkout, isa: str) -> dict[str, Path]:
    """Configures and compiles build/vm/ISA-PRESET for each preset; the directories."""
    cross = []
    if isa != "x86_64":
        cross = [*_toolchain(checkout, isa), f"-DGTest_DIR={_cross_googletest(checkout, isa)}"]
    options = ("-DTERRACE_TESTS=ON", "-DTERRACE_EVERY_TEST=ON", "-DTERRACE_BENCH=OFF")
    directories = {}
    for preset, folders in FOLDERS.items():
        say(f"compiling for {isa}, preset {preset}")
        directory = checkout.build / "vm" / f"{isa}-{preset}"
        _cmake(checkout, "--preset", preset, "-B", str(directory), *cross, *options)
        library = ["terrace_shared"] if preset == "release" else []
        _compile(checkout, directory, *library, *(f"tests/{name}/all" for name in folders))
        directories[preset] = directory
    return directories


def list_tests(checkout: Checkout, directory: Path) -> dict[str, Any]:
    """What ctest knows of them."""
    words = ("--test-dir", str(directory), "--show-only=json-v1")
    listing: dict[str, Any] = json.loads(run_tool([tool(checkout, "ctest"), *words]))
    return listing


def commit(checkout: Checkout) -> str:
    """The short hash of what was built, with a + for changes that are not committed, but for texts."""
    git = ["git", "-C", str(checkout.root)]
    try:
        changed = run_tool([*git, "status", "--porcelain", "--untracked-files=no", *_SOURCES])
        return run_tool([*git, "rev-parse", "--short", "HEAD"]).strip() + ("+" if changed else "")
    except TerraceError:
        return "?"
