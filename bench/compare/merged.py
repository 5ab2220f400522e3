# SPDX-License-Identifier: MIT OR Apache-2.0
"""Results of several machines, side by side.

A number of one machine never stands for another's: what a machine lacks stays empty, and a mean is over those workloads that
every machine has measured. "One thread per core" is the same workload everywhere, whatever the number of cores: its key ends in
/cores here.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from metrics import TIME
from store import FORMAT, ChangedError, Header, Key, Measurement, Results, Store
from summary import OURS, Comparison

# Two files in which none of these differs are of one machine. Those behind the first two also tell machines apart that are
# called the same.
IDENTITY = ("processor", "cores", "vendor", "family", "memory", "kernel", "C library")
AMOUNT = "amount of work"


class MergeError(Exception):
    """Why these files can not stand side by side, in one line."""


@dataclass(frozen=True)
class Machine:
    """Of one file; `shared` has only what every other file has measured as well."""

    label: str
    path: Path
    data: Comparison
    shared: Comparison

    @property
    def facts(self) -> dict[str, str]:
        return self.data.header.machine


@dataclass
class Merged:
    machines: list[Machine]
    reference: str
    allocators: list[str] = field(default_factory=list)  # of any machine, in the order of the files
    workloads: dict[str, dict[str, Any]] = field(default_factory=dict)  # the same, with name, group, threads

    def __post_init__(self) -> None:
        for machine in self.machines:
            self.allocators += [a for a in machine.data.allocators if a not in self.allocators]
            self.workloads |= {w: machine.data.header.workloads[w] for w in machine.data.workloads if w not in self.workloads}

    @cached_property
    def sections(self) -> list[str]:
        """Of the workloads that all machines have: the same ones for each."""
        return list(self.machines[0].shared.sections)

    @cached_property
    def everywhere(self) -> list[str]:
        """The other allocators that no machine lacks."""
        return [a for a in self.allocators if a != OURS and all(a in m.data.allocators for m in self.machines)]


def _from_report(content: dict[str, Any]) -> Results:
    """What compare.json says."""
    keys = ("kind", "workload", "allocator", "round")
    found = [Measurement(Key(*(m[k] for k in keys)), m["values"], m["failed"]) for m in content["measurements"]]
    return Results(Header(**content["header"]), {m.key: m for m in found})


def _is_report(text: str) -> dict[str, Any] | None:
    try:
        content = json.loads(text)
    except ValueError:  # several lines, each of them JSON, or something else
        return None
    return content if isinstance(content, dict) and "measurements" in content else None


def read(path: Path) -> Results:
    """compare.jsonl or compare.json. Raises MergeError."""
    try:
        text = path.read_text(encoding="utf-8")
        content = _is_report(text)
        if content is not None and content.get("format") != FORMAT:
            raise ChangedError
        found: Results = Store(path) if content is None else _from_report(content)
    except OSError as error:
        raise MergeError(f"{path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError, ChangedError):
        raise MergeError(f"{path} is not what this version of `bench compare` writes (compare.jsonl, compare.json)") from None
    if not found.results:
        raise MergeError(f"{path} has no measurements")
    if missing := [name for name in ("processor", "cores") if not found.header.machine.get(name)]:
        raise MergeError(f"{path} does not say of its machine: {', '.join(missing)}")
    return found


def _renamed(found: Results) -> Results:
    """With /cores for as many threads as the machine has cores; the other groups' threads are the same everywhere."""
    cores = int(found.header.machine["cores"])
    names = {
        key: f"{info['name']}/cores"
        for key, info in found.header.workloads.items()
        if info["group"] == "micro" and info["threads"] == cores > 1
    }
    workloads = {names.get(key, key): info for key, info in found.header.workloads.items()}
    keys = {key: replace(key, workload=names.get(key.workload, key.workload)) for key in found.results}
    return Results(replace(found.header, workloads=workloads), {keys[k]: replace(m, key=keys[k]) for k, m in found.results.items()})


def _only(found: Results, workloads: set[str]) -> Results:
    return replace(found, header=replace(found.header, workloads={w: i for w, i in found.header.workloads.items() if w in workloads}))


def _one_machine(a: dict[str, str], b: dict[str, str]) -> bool:
    """A file of an older version does not know everything."""
    return all(a[name] == b[name] for name in IDENTITY if a.get(name) and b.get(name))


def _check(paths: Sequence[Path], found: Sequence[Results]) -> None:
    for i, (path, one) in enumerate(zip(paths, found, strict=True)):
        for before, other in zip(paths[:i], found[:i], strict=True):
            if _one_machine(one.header.machine, other.header.machine):
                raise MergeError(f"{before} and {path} are of the same machine: {_named(one.header.machine)}")
        first = found[0].header
        reference = next(iter(first.allocators))
        if reference not in one.header.allocators:
            raise MergeError(f"{path} has no {reference}, which everything is relative to")
        amounts = [header.facts.get(AMOUNT, "usual") for header in (first, one.header)]
        if amounts[0] != amounts[1]:
            raise MergeError(f"{paths[0]} and {path} had different amounts of work: {amounts[0]} and {amounts[1]}")


def _named(machine: dict[str, str]) -> str:
    name = " ".join(machine["processor"].replace("(R)", "").replace("(TM)", "").split())
    return f"{name}, {machine['cores']} {'core' if machine['cores'] == '1' else 'cores'}"


def labels(machines: Sequence[dict[str, str]]) -> list[str]:
    """Processor and cores; where that is the same, also the first thing in which they differ."""
    names = [_named(machine) for machine in machines]
    for fact in IDENTITY[2:]:
        for name in {n for n in names if names.count(n) > 1}:
            alike = [i for i, n in enumerate(names) if n == name]
            if len({machines[i].get(fact) for i in alike}) > 1:
                for i in alike:
                    names[i] = f"{name}, {machines[i].get(fact) or f'unknown {fact}'}"
    return names


def merge(paths: Sequence[Path]) -> Merged:
    """Raises MergeError."""
    raw = [read(path) for path in paths]
    _check(paths, raw)
    found = [_renamed(one) for one in raw]
    reference = next(iter(found[0].header.allocators))
    whole = [Comparison(one, reference) for one in found]
    have = [{w for w in data.workloads if data.absolute(TIME, w, reference)} for data in whole]
    everywhere = set.intersection(*have)
    shared = [Comparison(_only(one, everywhere), reference) for one in found]
    named = labels([one.header.machine for one in found])
    return Merged([Machine(*parts) for parts in zip(named, paths, whole, shared, strict=True)], reference)
