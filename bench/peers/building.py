# SPDX-License-Identifier: MIT OR Apache-2.0
"""Fetching the peers' sources and building each once: again only when sources, recipe or compiler changed."""

import hashlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from recipes import HERE, RECIPES, Command, Crate, Recipe, Site, locked_crates, upstream_version

FLAGS = ("CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS")
CARGO = "1.85"  # the first that reads all of the crates' manifests
AT_A_TIME = 2  # one long build of C++ beside the short ones
Progress = Callable[[str, int, int], None]  # name, steps done, steps in all


class BuildError(Exception):
    """One line on why."""


@dataclass(frozen=True)
class Built:
    """What is kept beside the object, as built.json."""

    key: str  # of everything that the object depends on
    version: str
    origin: str


def _log(root: Path, name: str) -> Path:
    return root / f"{name}.log"


def crates() -> dict[str, Crate]:
    return locked_crates((HERE / "crates.lock").read_text(encoding="utf-8"))


def has_sources(root: Path, crate: Crate) -> bool:
    """cargo notes the checksum of what it has unpacked last."""
    try:
        noted = json.loads((root / "sources" / crate.folder / ".cargo-checksum.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return bool(noted.get("package") == crate.checksum)


def fetch(root: Path) -> str:
    """Puts the sources of all crates of the lock file into ROOT/sources; what went wrong in one line, or nothing."""
    wanted = crates()
    if all(has_sources(root, wanted[recipe.crate]) for recipe in RECIPES):
        return ""
    if shutil.which("cargo") is None:
        return f"there is no cargo (at least {CARGO}), which fetches the sources"
    manifest = root / "Cargo.toml"  # a copy: cargo writes beside it
    shutil.copy(HERE / "Cargo.toml", manifest)
    command = ["cargo", "vendor", "--respect-source-config", "--versioned-dirs", "--manifest-path", str(manifest), str(root / "sources")]
    log = _log(root, "fetch")
    with log.open("w", encoding="utf-8") as file:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT, check=False)
    if done.returncode != 0:
        return f"cargo (at least {CARGO}) could not fetch the sources: {log}"
    others = [c.name for c in (wanted[recipe.crate] for recipe in RECIPES) if not has_sources(root, c)]
    return f"cargo brought other sources than crates.lock asks for: {', '.join(others)}" if others else ""


def _environment() -> dict[str, str]:
    """Upstream's flags only."""
    return {k: v for k, v in os.environ.items() if k not in FLAGS} | {"LC_ALL": "C"}


def compiler_version(command: str) -> str:
    try:
        said = subprocess.run([command, "--version"], capture_output=True, text=True, check=False, env=_environment())
    except OSError as error:
        raise BuildError(f"there is no {command}") from error
    return said.stdout.partition("\n")[0]


def recipe_key(recipe: Recipe, site: Site, compiler: str) -> str:
    """Changes with the sources, the commands, our files for the peer, and the compiler."""
    folder = HERE / "recipes" / recipe.name
    files = {path.name: path.read_text(encoding="utf-8") for path in sorted(folder.glob("*"))}
    steps = recipe.steps(Site(site.crate, site.sources, site.work, 0, site.compilers))
    text = json.dumps([site.crate.checksum, steps, recipe.product, files, compiler], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def read_built(root: Path, name: str) -> Built | None:
    try:
        return Built(**json.loads((root / name / "built.json").read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def run_step(command: Command, cwd: Path, log: Path, progress: Callable[[int, int], None]) -> None:
    """Everything it says goes to the log; Ninja's [12/178] is the progress."""
    with log.open("a", encoding="utf-8") as file:
        file.write(f"$ {' '.join(command)}\n")
        file.flush()
        try:
            process = subprocess.Popen(command, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                       text=True, errors="replace", env=_environment())
        except OSError as error:
            raise BuildError(f"there is no {command[0]}") from error
        with process:
            assert process.stdout is not None
            for line in process.stdout:
                file.write(line)
                if found := re.match(r"\[(\d+)/(\d+)\]", line):
                    progress(int(found[1]), int(found[2]))
    if process.returncode != 0:
        raise BuildError(f"`{' '.join(command[:2])}` ended with {process.returncode}: {log}")


def _take(product: Path, target: Path) -> None:
    """Puts the object in place at once, for programs that run on the old one."""
    if not product.exists():
        raise BuildError(f"the build did not make {product.name}")
    new = target.with_suffix(".new")
    shutil.copyfile(product.resolve(), new)
    new.rename(target)


def build(recipe: Recipe, root: Path, jobs: int, force: bool, progress: Progress) -> None:
    """ROOT/NAME/libNAME.so is up to date afterwards, or BuildError is raised."""
    crate = crates()[recipe.crate]
    compilers = recipe.compilers()
    site = Site(crate, root / "sources" / crate.folder, root / recipe.name / "work", jobs, compilers)
    if not has_sources(root, crate):
        raise BuildError(f"the sources of {crate.folder} are not here")
    compiler = compiler_version(compilers.cxx if recipe.language == "c++" else compilers.c)
    key = recipe_key(recipe, site, compiler)
    target = root / recipe.name / f"lib{recipe.name}.so"
    before = read_built(root, recipe.name)
    if target.exists() and before is not None and before.key == key and not force:
        return
    shutil.rmtree(site.work, ignore_errors=True)
    site.work.mkdir(parents=True)
    log = _log(root, recipe.name)
    log.write_text("", encoding="utf-8")
    for step in recipe.steps(site):
        run_step(step, site.work, log, lambda done, total: progress(recipe.name, done, total))
    _take(site.work / recipe.product, target)
    built = Built(key, upstream_version(recipe, site), f"crate {crate.name} {crate.short_version}")
    target.with_name("built.json").write_text(json.dumps(asdict(built), indent=1) + "\n", encoding="utf-8")
    shutil.rmtree(site.work)


def build_all(recipes: Sequence[Recipe], root: Path, jobs: int, force: bool, progress: Progress) -> dict[str, str]:
    """Several at a time; what went wrong by name, for those that could not be built."""
    failed: dict[str, str] = {}

    def attempt(recipe: Recipe) -> None:
        progress(recipe.name, 0, 1)
        try:
            build(recipe, root, jobs, force, progress)
        except BuildError as reason:
            failed[recipe.name] = str(reason)
        progress(recipe.name, 1, 1)

    with ThreadPoolExecutor(AT_A_TIME) as pool:
        list(pool.map(attempt, recipes))
    return failed
