# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs a program on glibc's malloc or on Terrace, in surroundings of one's choice, and checks how it ended."""

import os
import re
import subprocess
from dataclasses import dataclass, field

ALL_RUNGS = ["mm_cid", "cpu_id", "getcpu", "thread"]
OUR_VARIABLES = ["LD_PRELOAD", "TERRACE_RUNG", "TERRACE_PLACEMENT", "TERRACE_STATS", "TERRACE_STATS_FILE", "TERRACE_BUDGET",
                 "TERRACE_DECAY_MS", "TERRACE_CHECK", "GLIBC_TUNABLES"]
TIMEOUT = int(os.environ.get("TERRACE_TEST_TIMEOUT", "120"))  # seconds; emulated machines need longer


class Failure(Exception):
    """The program did not end as it should."""


class Skip(Exception):
    """Not possible on this machine."""


@dataclass
class Setting:
    """What malloc is."""

    name: str
    preload: str = ""
    environment: dict = field(default_factory=dict)


class Harness:
    def __init__(self, preload, programs):
        self.preload = preload
        self.programs = programs

    def program(self, name):
        path = os.path.join(self.programs, "env_" + name)
        return path if os.path.exists(path) else os.path.join(self.programs, name)

    def terrace(self, rung=None, **environment):
        if rung is not None:
            environment["TERRACE_RUNG"] = rung
        return Setting(rung or "terrace", self.preload, environment)

    def glibc(self):
        return Setting("glibc")

    def rungs(self):
        """Terrace on each rung that is to be had here."""
        for rung in ALL_RUNGS:
            setting = self.terrace(rung)
            complaint = self.execute(setting, ["true"]).stderr
            if complaint.startswith("terrace: TERRACE_RUNG"):
                print(f"  {rung}: {complaint}", end="", flush=True)
                continue
            yield setting

    def settings(self):
        yield self.glibc()
        yield from self.rungs()

    def execute(self, setting, command, preload_variable="LD_PRELOAD", before_exec=None, **environment):
        everything = {k: v for k, v in os.environ.items() if k not in OUR_VARIABLES}
        everything.update(setting.environment)
        everything.update(environment)
        if setting.preload:
            everything[preload_variable] = setting.preload
        with subprocess.Popen(command, env=everything, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, preexec_fn=before_exec, start_new_session=True) as process:
            try:
                stdout, stderr = process.communicate(timeout=TIMEOUT)
            except subprocess.TimeoutExpired as too_long:
                os.killpg(process.pid, 9)  # its own session: only what it started
                raise Failure(f"{setting.name}: {' '.join(command)}: did not end within {TIMEOUT} s") from too_long
        return subprocess.CompletedProcess(command, process.returncode, stdout, stderr)

    def run(self, setting, command, status=0, stdout=r"(?s).*ok\n", stderr=r"", **how):
        """Fails unless the exit status is as given and both outputs match their patterns in full. The output."""
        result = self.execute(setting, command, **how)
        problem = None
        if result.returncode != status:
            problem = f"status {result.returncode} instead of {status}"
        elif not re.fullmatch(stdout, result.stdout):
            problem = f"not {stdout!r} on standard output"
        elif not re.fullmatch(stderr, result.stderr):
            problem = f"not {stderr!r} on standard error"
        if problem is not None:
            raise Failure(f"{setting.name}: {' '.join(command)}: {problem}; wrote {result.stdout!r} and {result.stderr!r}")
        return result.stdout
