# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs the tests of a plan inside a guest of `terrace test vm`; a line of JSON for each goes to the console.

Lines begin with a mark, so that the host finds them among whatever else a console shows. Kinds: machine (what the guest found),
start, result, cut (the test that was running when the guest's time was over), rung (what Terrace chooses here, and why), kernel (complaints
of the kernel's log), end. Tests run one after the other. A test with "unplug" runs while the CPUs but the first go offline and online
again.
"""

import glob
import json
import os
import platform
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

MARK = "@terrace-vm "
TAIL = 6000
LEAST = 60  # seconds that a test has, however late it began
CPUS = "/sys/devices/system/cpu"
COMPLAINT = re.compile(r"BUG:|WARNING:|Oops|stall|lockup|hung task|Out of memory|general protection|rseq")


def say(kind, **fields):
    print(MARK + json.dumps({"kind": kind, **fields}), flush=True)


def read(path):
    with open(path, encoding="ascii") as file:
        return file.read().strip()


def last_level_caches():
    """The sets of CPUs that share the highest level of cache; none where the kernel shows no caches."""
    found = set()
    for cpu in glob.glob(f"{CPUS}/cpu[0-9]*"):
        levels = {int(read(f"{index}/level")): index for index in glob.glob(f"{cpu}/cache/index*")}
        if levels:
            found.add(read(f"{levels[max(levels)]}/shared_cpu_list"))
    return found


def machine():
    return {
        "kernel": platform.release(),
        "libc": os.confstr("CS_GNU_LIBC_VERSION"),
        "isa": platform.machine(),
        "cpus": os.cpu_count(),
        "last_level_caches": len(last_level_caches()),
        "nodes": len(glob.glob("/sys/devices/system/node/node[0-9]*")),
    }


def switch(cpu, online):
    with open(f"{CPUS}/cpu{cpu}/online", "w", encoding="ascii") as file:
        file.write("1" if online else "0")


class Unplug(threading.Thread):
    """Takes CPUs away and gives them back until told to stop: first all but one, then one after the other."""

    def __init__(self):
        super().__init__()
        self.cpus = sorted(int(re.search(r"\d+$", p).group()) for p in glob.glob(f"{CPUS}/cpu[0-9]*") if os.path.exists(f"{p}/online"))
        self.cpus = [cpu for cpu in self.cpus if cpu != 0]
        self.over = threading.Event()
        self.count = 0
        self.problem = None

    def run(self):
        try:
            while not self.over.is_set():
                for cpu in self.cpus:
                    self.set(cpu, False)
                for cpu in self.cpus:
                    self.set(cpu, True)
                for cpu in self.cpus:
                    self.set(cpu, False)
                    self.set(cpu, True)
        except OSError as error:
            self.problem = f"CPUs can not be unplugged: {error}"

    def set(self, cpu, online):
        if self.over.is_set() and not online:
            return
        switch(cpu, online)
        self.count += not online

    def finish(self):
        self.over.set()
        self.join()
        for cpu in self.cpus:
            if read(f"{CPUS}/cpu{cpu}/online") == "0":
                switch(cpu, True)


def execute(test, seconds):
    """(exit status or None when it took more than so many seconds, output)"""
    environment = {**os.environ, **test["environment"]}
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(test["command"], env=environment, cwd=test["directory"], stdin=subprocess.DEVNULL, stdout=output,
                                   stderr=subprocess.STDOUT, start_new_session=True)
        try:
            status = process.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            status = None
        output.seek(0)
        return status, output.read().decode(errors="replace")


def verdict(test, status, output):
    if status is None:
        return "failed", f"did not end within {test['timeout']:.0f} s"
    if status == test["skip_status"] or (test["skip_pattern"] and status == 0 and re.search(test["skip_pattern"], output)):
        return "skipped", ""
    return ("passed", "") if status == 0 else ("failed", f"status {status}")


def run(test, end, least):
    """Cuts it off at `end`, or `least` seconds after it began: a test that hangs does not take the guest's results with it."""
    say("start", test=test["name"])
    began = time.monotonic()
    seconds = min(test["timeout"], max(end - began, least))
    unplug = Unplug() if test.get("unplug") else None
    if unplug:
        unplug.start()
    try:
        status, output = execute(test, seconds)
    except OSError as error:
        status, output = 127, str(error)
    result, reason = verdict(test, status, output)
    if unplug:
        unplug.finish()
        output += f"\n{unplug.count} times a CPU went offline\n"
        if result == "passed" and (unplug.problem or unplug.count == 0):
            result, reason = "failed", unplug.problem or "no CPU went offline"
    if status is None and seconds < test["timeout"]:
        return say("cut", test=test["name"], seconds=round(time.monotonic() - began, 1), output=output[-TAIL:])
    say("result", test=test["name"], result=result, reason=reason, seconds=round(time.monotonic() - began, 1),
        output=output[-TAIL:] if result == "failed" else output[-300:])


def rung(library):
    """What the library chooses for a program that asks for nothing."""
    with tempfile.TemporaryDirectory() as directory:
        file = f"{directory}/statistics"
        subprocess.run(["/bin/true"], env={**os.environ, "LD_PRELOAD": library, "TERRACE_STATS_FILE": file})
        with open(file, encoding="utf-8") as text:
            report = json.load(text)
    return {"rung": report["rung"], "reason": report["rung_reason"]}


def kernel_complaints():
    log = subprocess.run(["dmesg"], capture_output=True, text=True, errors="replace").stdout
    return [line for line in log.splitlines() if COMPLAINT.search(line)][:40]


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        plan = json.load(file)
    found = machine()
    say("machine", **found)
    wrong = {k: found[k] for k, v in plan["expect"].items() if found[k] != v}
    say("result", test="vm.machine_is_as_asked", result="failed" if wrong else "passed", seconds=0, reason=f"found {wrong}" if wrong else "",
        output="")
    if "library" in plan:
        say("rung", **rung(plan["library"]))
    end = time.monotonic() + plan["seconds"]
    for test in plan["tests"]:
        if time.monotonic() < end:
            run(test, end, plan.get("least", LEAST))
    say("kernel", lines=kernel_complaints())
    say("end")


if __name__ == "__main__":
    main()
