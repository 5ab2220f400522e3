# SPDX-License-Identifier: MIT OR Apache-2.0
"""`terrace doctor`: which rung of the fallback ladder is in use, why, and what else matters."""

import argparse
import json
import shutil
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from terrace import facts
from terrace.advice import Facts, advise
from terrace.arguments import Commands
from terrace.captured import run_captured
from terrace.checkout import Checkout
from terrace.library import find_library
from terrace.messages import count
from terrace.report import stats
from terrace.report.cells import human_bytes
from terrace.run import make_directory, preload_environment, preloadable, remove_directory
from terrace.running import judge

RUNGS = ("mm_cid", "cpu_id", "getcpu", "thread")

_PROBE_SECONDS = 20


def probe(library: str, rung: str | None) -> dict[str, Any]:
    """Runs a tiny program under the library, with a rung forced or not, and reads its report."""
    directory = make_directory()
    try:
        environment = preload_environment(library, f"{directory}/%p")
        environment.pop(b"TERRACE_STATS", None)
        if rung is not None:
            environment[b"TERRACE_RUNG"] = rung.encode()
        program = shutil.which("true") or "/bin/true"
        done = run_captured([program], environment, timeout=_PROBE_SECONDS)
        found = stats.load_directory(directory).processes
    except subprocess.TimeoutExpired:
        return {"works": False, "message": f"no answer within {_PROBE_SECONDS} s"}
    finally:
        remove_directory(directory)
    message = done.stderr.strip()
    if done.returncode != 0 or not found:
        return {
            "works": False,
            "message": message or f"exit status {done.returncode}, no statistics",
        }
    answer = found[0]
    return {
        "works": rung in (None, answer["rung"]),
        "rung": answer["rung"],
        "reason": answer["rung_reason"],
        "valid_after_calls": answer.get("valid_after_calls"),
        "slots": answer["slots"],
        "placement": answer["placement"],
        "version": answer["version"],
        "message": message,
    }


def examine(library: Path) -> dict[str, Any]:
    """The whole answer, as --json prints it."""
    machine = facts.collect()
    default = probe(str(library), None)
    return {
        "usable": default["works"],
        "library": str(library),
        "default": default,
        "rungs": {rung: probe(str(library), rung) for rung in RUNGS},
        "machine": machine,
        "advice": advise(machine, default),
    }


def _limit(value: int | None) -> str:
    return "unlimited" if value is None else human_bytes(value)


def machine_lines(machine: Facts) -> list[tuple[str, str]]:
    """The machine's rows of the table."""
    rseq = machine["rseq"]
    topology = machine["topology"]
    l1 = topology["l1_data"]
    quota = machine["cgroup"]["cpus"]
    shape = ", ".join(
        (
            f"{count(topology['cpus_online'], 'CPU')} ({topology['cpus_allowed']} allowed)",
            count(topology["cores"], "core"),
            count(topology["last_level_caches"], "last-level cache"),
            count(topology["nodes"], "node"),
        )
    )
    libc_area = (
        "none"
        if not rseq["libc_size"]
        else f"{rseq['libc_size']} bytes at {rseq['libc_offset']:+d}"
    )
    return [
        ("kernel", machine["kernel"]),
        ("libc", machine["libc"]),
        ("rseq, kernel", f"feature size {rseq['kernel_feature_size'] or 'not reported'}"),
        ("rseq, libc's area", libc_area),
        ("topology", shape),
        (
            "level-1 data cache",
            f"{l1['size'] or '?'}, {l1['sets'] or '?'} sets of {l1['line'] or '?'}-byte lines",
        ),
        ("page size", human_bytes(machine["page_size"])),
        ("transparent huge pages", machine["transparent_huge_pages"]),
        ("overcommit_memory", machine["overcommit"]),
        ("RLIMIT_AS, RLIMIT_DATA", ", ".join(_limit(v) for v in machine["limits"].values())),
        (
            "cgroup memory, CPUs",
            _limit(machine["cgroup"]["memory"]) + ("" if quota is None else f", {quota:g}"),
        ),
    ]


def _rung_row(answer: dict[str, Any]) -> str:
    if answer["works"]:
        return "works"
    lines: list[str] = answer["message"].splitlines() or ["refused"]
    return "not here: " + lines[0]


def _transactions_row(answer: dict[str, Any]) -> str:
    if answer.get("valid_after_calls", True):
        return "a system call that lets others run ends them"
    return "may read as valid after a system call: terrace_cs_reopen() (Linux 6.19 and later)"


def print_findings(findings: dict[str, Any]) -> None:
    """For people, on stdout."""
    default = findings["default"]
    if default["works"]:
        rows = [
            ("rung in use", f"{default['rung']}: {default['reason']}"),
            ("slots, placement", f"{default['slots']}, {default['placement']}"),
            ("transactions", _transactions_row(default)),
        ]
    else:
        rows = [("rung in use", f"NONE: {default['message']}")]
    rows.append(("library", findings["library"]))
    rows += [(f"forced {rung}", _rung_row(answer)) for rung, answer in findings["rungs"].items()]
    rows += machine_lines(findings["machine"])
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        print(f"{name:<{width}} {value}")
    for line in findings["advice"]:
        print(f"* {line}")


def doctor(library: Path, *, as_json: bool) -> int:
    """Exit status 0 when programs run on Terrace here."""
    with preloadable(str(library)) as path:
        findings = examine(Path(path))
    findings["library"] = str(library)
    if as_json:
        json.dump(findings, sys.stdout, indent=1)
        print()
    else:
        print_findings(findings)
    return 0 if findings["usable"] else 1


def doctor_process(pid: int, *, as_json: bool) -> int:
    """Exit status 0 when the process runs on Terrace."""
    verdict = judge(pid)
    if as_json:
        print(json.dumps({**asdict(verdict), "usable": verdict.reason is None}, indent=1))
    else:
        print(verdict.sentence)
    return 0 if verdict.reason is None else 1


def add_parser(commands: Commands) -> None:
    parser = commands.add_parser(
        "doctor",
        help="say which rung of the fallback ladder is in use here, and why; or of a process, "
        "whether it runs on Terrace",
        description="Exit status 0 where programs run on Terrace; with PID, where that process "
        "does. 1 where not, and 2 where it can not be told.",
    )
    parser.add_argument("pid", nargs="?", type=int, metavar="PID", help="a process to look at")
    parser.add_argument("--json", action="store_true", help="for programs to read")
    parser.set_defaults(act=run)


def run(options: argparse.Namespace, checkout: Checkout | None) -> int:
    """The command."""
    if options.pid is not None:
        return doctor_process(options.pid, as_json=options.json)
    return doctor(find_library(checkout), as_json=options.json)
