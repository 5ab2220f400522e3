# SPDX-License-Identifier: MIT OR Apache-2.0
"""Which workloads and which allocators there are: every folder beside this one that has workloads has a module workloads.py."""

import fnmatch
import importlib.util
import inspect
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

from machine import digest
from workload import Workload

BENCH = Path(__file__).resolve().parent.parent
FOLDERS = ("micro", "replay", "apps")
GROUPS = ("micro", "trace", "program")
SCALING = "threads"  # a group apart: the same work with further thread counts is shown, but counts once in the means
BORROWED = {"micro": ("seeds/bench_sleepers",)}  # programs of other folders
TINY = 0.02  # of the usual amount of work


@dataclass
class Catalogue:
    workloads: list[Workload] = field(default_factory=list)
    folders: dict[str, str] = field(default_factory=dict)  # a workload's key -> its folder
    programs: dict[str, str] = field(default_factory=dict)  # folder -> hash of what its workloads run
    missing: list[str] = field(default_factory=list)  # lines on what could not be found


def load(path: Path, name: str) -> ModuleType:
    """Several folders have a module of the same name, so each is loaded under another one; its folder stays on the path for
    what it imports later."""
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _of_module(module: ModuleType, build: Path, tiny: bool) -> list[Workload]:
    known = inspect.signature(module.workloads).parameters
    scale = {"seconds_scale": TINY} if tiny and "seconds_scale" in known else {}
    found: list[Workload] = module.workloads(build, **scale)
    further = getattr(module, "scaling", None)  # the same names with other thread counts
    return found + (further(build, **scale) if further else [])


def _programs(folder: Path, build: Path) -> str:
    """Of what a folder's workloads consist of: modules (those that were loaded: there are others beside them), scripts, programs."""
    files = [Path(f) for m in list(sys.modules.values()) if (f := getattr(m, "__file__", None))]
    modules = {f.resolve() for f in files if f.resolve().parent == folder.resolve()}
    scripts = {f for f in (folder / "scripts").rglob("*") if f.is_file()}
    built = [p for p in (build / "bench" / folder.name).glob("bench_*") if p.is_file()]
    borrowed = [p for p in (build / "bench" / name for name in BORROWED.get(folder.name, ())) if p.exists()]
    return digest([*modules, *scripts, *built, *borrowed])


def catalogue(build: Path, bench: Path = BENCH, folders: Sequence[str] = FOLDERS, tiny: bool = False) -> Catalogue:
    result = Catalogue()
    for name in folders:
        path = bench / name / "workloads.py"
        if not path.exists():
            result.missing.append(f"no workloads of bench/{name}: there is no {path.name}")
            continue
        module = load(path, f"workloads_of_{name}")
        found = _of_module(module, build, tiny)
        result.workloads += found
        result.folders |= {workload.key: name for workload in found}
        result.programs[name] = _programs(path.parent, build)
        if absent := getattr(module, "missing", None):
            result.missing += [str(line) for line in absent()]
    return result


def chosen(workloads: Sequence[Workload], groups: Sequence[str], patterns: Sequence[str]) -> list[Workload]:
    """Of these groups, and, if there are patterns, with a name or NAME/THREADS that matches one. Raises ValueError for a pattern
    that nothing matches: a slip of the pen must not become an empty table."""
    wanted = [w for w in workloads if w.group in groups or (w.group == SCALING and "micro" in groups)]
    if not patterns:
        return wanted
    for pattern in patterns:
        if not any(_matches(w, pattern) for w in wanted):
            raise ValueError(f"no workload is called {pattern}; there are: {' '.join(sorted({w.name for w in wanted}))}")
    return [w for w in wanted if any(_matches(w, p) for p in patterns)]


def _matches(workload: Workload, pattern: str) -> bool:
    return fnmatch.fnmatchcase(workload.name, pattern) or fnmatch.fnmatchcase(workload.key, pattern)
