# SPDX-License-Identifier: MIT OR Apache-2.0
"""The article's ::umastat: what each cache of a thread holds, here of a core's slot, while node computes md5 sums."""

import argparse
import os
import shutil
import subprocess
import time
from collections.abc import Sequence

from churn import SCRIPT
from interleave import Subject
from report import ROOT, Report

FOR_EVER = 1_000_000_000  # sums


def _umastat(node: str, subject: Subject, seconds: float) -> str:
    """Of a process that has run for so long."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("TERRACE_", "UMEM_"))}
    environment.pop("LD_PRELOAD", None)
    with subprocess.Popen([node, str(SCRIPT), str(FOR_EVER)], env=environment | subject.environment, stdout=subprocess.DEVNULL) as program:
        try:
            time.sleep(seconds)
            command = [str(ROOT / "terrace"), "umastat", str(program.pid)]
            done = subprocess.run(command, env=environment | {"COLUMNS": "200"}, capture_output=True, text=True, check=False)
        finally:
            program.kill()
    return done.stdout if done.returncode == 0 else ""


def run(options: argparse.Namespace, page: Report, present: Sequence[Subject]) -> None:
    node, libumem = shutil.which("node"), next((s for s in present if s.name == "libumem"), None)
    if node is None or libumem is None or options.smoke:
        return
    capped = Subject(libumem.name, {**libumem.environment, "UMEM_OPTIONS": "perthread_cache=64m"})
    shown = _umastat(node, capped, 5.0)
    if not shown:
        page.say("::umastat: not shown, as `terrace umastat` does not run here.")
        return
    page.say("`terrace umastat` of that node with libumem and a cap of 64 MB, as it runs. The article's table has a row for each "
             "thread; here the fast path's caches are those of a core, so there is a row for each slot. Below it, as there, a row "
             "for each size: objects in use, in slots (the article's \"in ptc\"), in depots, and in all.")
    page.terminal("seeds-umastat", "terrace umastat", shown)
