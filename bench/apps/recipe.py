# SPDX-License-Identifier: MIT OR Apache-2.0
"""A program that is started, does one piece of work and ends, as a workload.

What it has to say is learned in `prepare`, by a run without any allocator: its output, the files it writes, and what can be
seen of its results from outside. A run under an allocator that says something else has failed, however fast it was.
"""

import hashlib
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from interleave import Subject, Values, glibc
from workload import Failed, Workload, launched

GROUP = "program"
EXPECTED = "expected"  # file in the workload's folder


def _nothing(_folder: Path) -> None:
    pass


def _no_more(_folder: Path) -> str:
    return ""


def _as_it_is(text: str) -> str:
    return text


@dataclass(frozen=True)
class Recipe:
    """Each function gets the workload's own folder in the scratch directory, which is also where the program runs."""

    name: str
    command: Callable[[Path], list[str]]
    expects: str  # a regular expression that the output without an allocator has to contain: else the input is wrong
    needs: tuple[str, ...] = ()  # commands or absolute paths; without them the workload is left out
    threads: int = 1
    prepare: Callable[[Path], None] = _nothing
    before: Callable[[Path], None] = _nothing  # before each run
    artefacts: tuple[str, ...] = ()  # files that belong to the output
    inspect: Callable[[Path], str] = _no_more  # after a run, without an allocator: what is to be seen of its results
    normalise: Callable[[str], str] = _as_it_is  # takes away what differs from run to run, times say
    environment: dict[str, str] = field(default_factory=dict)


def find(name: str) -> str | None:
    """A command's path; /usr/bin first, because what is elsewhere on the PATH may be a script that starts the program."""
    return shutil.which(name, path="/usr/bin:/bin") or shutil.which(name)


def with_more(subject: Subject, environment: dict[str, str]) -> Subject:
    return replace(subject, environment={**subject.environment, **environment})


def refuse_unloaded(errors: str) -> None:
    """The dynamic linker goes on without an object that it cannot load, and one would measure glibc."""
    if "cannot be preloaded" in errors:
        raise Failed(next(line for line in errors.splitlines() if "cannot be preloaded" in line)[:200])


def _contents(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise Failed(f"{path.name} was not written") from error


def _fingerprint(recipe: Recipe, folder: Path, output: str) -> str:
    parts = [recipe.normalise(output).encode(), recipe.inspect(folder).encode()]
    parts += [_contents(folder / name) for name in recipe.artefacts]
    return "\n".join(hashlib.sha256(part).hexdigest() for part in parts)


def _run(build: Path, recipe: Recipe, subject: Subject, folder: Path) -> tuple[Values, str]:
    recipe.before(folder)
    for name in recipe.artefacts:
        (folder / name).unlink(missing_ok=True)
    run = launched(build, with_more(subject, recipe.environment), recipe.command(folder), cwd=folder)
    refuse_unloaded(run.errors)
    return run.values, run.output


def _prepare(build: Path, recipe: Recipe, scratch: Path) -> None:
    folder = scratch / recipe.name
    folder.mkdir(exist_ok=True)
    recipe.prepare(folder)
    _, output = _run(build, recipe, glibc(), folder)
    if re.search(recipe.expects, output) is None:
        raise Failed(f"{recipe.name} without an allocator does not say {recipe.expects!r} but {output[-200:]!r}")
    (folder / EXPECTED).write_text(_fingerprint(recipe, folder, output))


def _measure(build: Path, recipe: Recipe, subject: Subject, scratch: Path) -> Values:
    folder = scratch / recipe.name
    values, output = _run(build, recipe, subject, folder)
    if _fingerprint(recipe, folder, output) != (folder / EXPECTED).read_text():
        raise Failed(f"{recipe.name} says or writes something else than without an allocator")
    return values


def workload(build: Path, recipe: Recipe) -> Workload:
    return Workload(recipe.name, GROUP, recipe.threads, partial(_measure, build, recipe), partial(_prepare, build, recipe))
