# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the tests of `terrace test vm` have in common."""

import json
from pathlib import Path

from terrace.vm import results as vm_results
from terrace.vm import tests as vm_tests
from terrace.vm.results import MARK, Outcome
from terrace.vm.rows import FOUR, Row

ROW = Row("newest", "trixie", "x86_64", FOUR)
BUILD = Path("/w/build/vm/x86_64")
ALL = vm_tests.FOLDERS["release"]


def listed(name, command, **properties):
    return {
        "name": name,
        "command": command,
        "properties": [{"name": k, "value": v} for k, v in properties.items()],
    }


def console(*reports):
    return "".join(f"{MARK}{json.dumps(r)}\n" for r in reports)


def result(name, what="passed", reason=""):
    return {"kind": "result", "test": name, "result": what, "reason": reason, "output": ""}


MACHINE = {"kind": "machine", "kernel": "7.3", "libc": "glibc 2.41", "isa": "x86_64"}


def read(text, planned=2):
    outcome = Outcome(ROW.name, machine=FOUR.name, planned=planned)
    vm_results.read_console(outcome, text)
    return outcome


def stresses():
    names = [f"stress.{rung}.calm" for rung in ("mm_cid", "cpu_id", "getcpu", "thread")]
    listing = {"tests": [listed(n, ["x"]) for n in ("unit.Balance.x", *names, "vm.traffic")]}
    return vm_tests.read_tests(listing, BUILD, ALL)
