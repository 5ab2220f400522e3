# SPDX-License-Identifier: MIT OR Apache-2.0
"""Packages in fresh roots of distributions: installed, used by the recipe's use.sh, removed."""

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from terrace.errors import TerraceError
from terrace.messages import say
from terrace.package.emulation import emulated
from terrace.package.image_trying import try_image
from terrace.package.making import Source, call
from terrace.package.roots import Root, fresh_root, full_archive, suites
from terrace.package.sources import try_source


def linked(source: Source) -> tuple[Path, Path]:
    """The program that users link, and the CMake file with which they do."""
    programs = source.root / "tests" / "install" / "programs"
    return programs / "program.c", source.recipes / "linked" / "CMakeLists.txt"


def try_tar(source: Source, made: list[Path], root: Root) -> None:
    root.bring(*made, *linked(source), source.recipes / "tar" / "use.sh")
    root.run(f"sh use.sh {made[0].name} {source.machine}")


def try_tar_of_musl(source: Source, made: list[Path], directory: Path) -> None:
    """Here, by this machine's musl."""
    use = str(source.recipes / "tar" / "use-musl.sh")
    for archive in made[1:]:
        call(["sh", use, str(archive), *map(str, linked(source))], directory)


def try_wheel(source: Source, made: list[Path], root: Root) -> None:
    """Without a network."""
    root.bring(*made, source.recipes / "wheel" / "use.sh")
    root.run(
        f"python3 -m venv new; new/bin/pip install --quiet --no-index --no-deps {made[0].name};"
        "sh use.sh /tmp/new/bin/terrace /tmp/new/bin/python;"
        "new/bin/pip uninstall --quiet --yes terrace; test -z $(find new -name *terrace*)"
    )


def try_wheel_for_debugging(source: Source, made: list[Path], directory: Path) -> None:
    """Here, with the extra that findleaks needs."""
    python = f"{directory}/new/bin/python"
    call([sys.executable, "-m", "venv", f"{directory}/new"], directory)
    call([python, "-m", "pip", "install", "--quiet", f"{made[0]}[debug]"], directory)
    use = str(source.recipes / "wheel" / "use.sh")
    call(["sh", use, f"{directory}/new/bin/terrace", python], directory)


def try_crate(source: Source, made: list[Path], directory: Path) -> None:
    call(["sh", str(source.recipes / "crate" / "use.sh"), *map(str, made)], directory)


def try_deb(source: Source, made: list[Path], root: Root) -> None:
    root.bring(*(p for p in made if "-dbgsym_" not in p.name), source.recipes / "debian/use.sh")
    root.bring(*linked(source))
    root.run(f"sh use.sh {'emulated' if source.is_cross else ''}")


def try_rpm(source: Source, made: list[Path], root: Root) -> None:
    """Put into the root by this machine's rpm, since Debian has none of the packages they need."""
    before = sorted(root.path.rglob("*terrace*"))
    rpm = ["rpm", "--root", str(root.path)]
    call([*rpm, "--initdb"], root.path)
    call([*rpm, "--install", "--nodeps", *map(str, made)], root.path)
    root.bring(*linked(source), source.recipes / "rpm" / "use.sh")
    root.run("sh use.sh")
    call([*rpm, "--erase", "--nodeps", *(path.name[:-4] for path in made)], root.path)
    left = sorted(set(root.path.rglob("*terrace*")) - set(before))
    if left:
        raise TerraceError(f"rpm: removed, and these are left: {' '.join(map(str, left))}")


IN_ROOTS: dict[str, Callable[[Source, list[Path], Root], None]] = {
    "tar": try_tar,
    "wheel": try_wheel,
    "deb": try_deb,
    "rpm": try_rpm,
}
HERE: dict[str, Callable[[Source, list[Path], Path], None]] = {  # in an empty directory
    "source": try_source,
    "tar": try_tar_of_musl,
    "crate": try_crate,
    "wheel": try_wheel_for_debugging,
}


def available_suites(source: Source, roots: Path) -> Iterator[str]:
    """Those that a root can be made of, from an archive that may be out of reach; one must be."""
    for number, suite in enumerate(suites(source)):
        try:
            full_archive(source, suite, roots)
        except TerraceError as error:
            if number == 0:
                raise
            reasons = [line for line in str(error).splitlines() if line.startswith("E: ")]
            reason = reasons[0] if reasons else "mmdebstrap failed"
            say(f"not tried on {suite}: no root can be made: {reason}")
        else:
            yield suite


def _try_in_roots(kind: str, source: Source, made: list[Path], roots: Path) -> None:
    for suite in available_suites(source, roots):
        with fresh_root(source, suite, roots) as root:
            IN_ROOTS[kind](source, made, root)
        say(f"{kind}: installed, used and removed in a fresh root of {suite}")


def try_everywhere(kind: str, source: Source, made: list[Path], roots: Path) -> None:
    """In a fresh root of each suite, and on this machine."""
    if kind in IN_ROOTS or kind == "image":
        if os.geteuid() != 0:
            raise TerraceError("package --check makes roots of distributions, which only root can")
        with emulated(source):
            if kind == "image":
                try_image(source, made, roots)
            else:
                _try_in_roots(kind, source, made, roots)
    if kind in HERE and not source.is_cross:
        roots.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=roots) as directory:
            HERE[kind](source, made, Path(directory))
        say(f"{kind}: used on this machine")
