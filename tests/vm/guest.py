# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs the tests of a plan inside a guest of `terrace test vm`; a line of JSON for each goes to the console.

Lines begin with a mark, so that the host finds them among whatever else a console shows, and tell when they were written.
Kinds: machine (what the guest found), start, result, cut (the test that was running when the guest's time was over), rung (what
Terrace chooses here, and why), kernel (complaints of the kernel's log), end.

An entry of the plan is a test, or with "parts" several tests that one process runs in turn, as starting programs is what takes
most of an emulated machine's time. Entries with "alone" run first, one after the other, the rest on as many CPUs as the plan
says. A test with "unplug" runs while the CPUs but the first go offline and online again; these come last, since emulated kernels
have been seen to stop there.
"""

import contextlib
import glob
import json
import os
import platform
import queue
import re
import select
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

console = threading.Lock()


def say(kind, **fields):
    line = MARK + json.dumps({"kind": kind, "at": round(time.monotonic(), 1), **fields}) + "\n"
    with console:
        sys.stdout.write(line)
        sys.stdout.flush()
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


def contents(file):
    """What a child wrote so far; pread leaves the place alone at which it goes on."""
    return os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0).decode(errors="replace")


def where_they_are(session):
    """Of each thread of the processes of a session: what it waits for, its system call and the kernel's stack."""
    told = []
    for task in glob.glob("/proc/[0-9]*/task/*"):
        with contextlib.suppress(OSError):  # it is gone
            name, _, rest = read(f"{task}/stat").rpartition(")")
            if int(rest.split()[3]) == session:
                stack = read(f"{task}/stack").replace("\n", " ")
                told.append(f"{name}) {rest.split()[0]} wchan {read(f'{task}/wchan')} syscall {read(f'{task}/syscall')} stack {stack}\n")
    return "".join(told)


def execute(test, arguments, seconds, progress=lambda output: 0):
    """(exit status or None when it was killed, output): it is, when for so many seconds `progress` did not grow."""
    environment = {**os.environ, **test["environment"]}
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen([*test["command"], *arguments], env=environment, cwd=test["directory"], stdin=subprocess.DEVNULL,
                                   stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
        ended = os.pidfd_open(process.pid)
        before, end = 0, time.monotonic() + seconds
        while time.monotonic() < end and not select.select([ended], [], [], min(1, seconds))[0]:
            if progress(contents(output)) > before:
                before, end = progress(contents(output)), time.monotonic() + seconds
        os.close(ended)
        status = process.poll()
        where = ""
        if status is None:
            where = where_they_are(process.pid)
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        return status, contents(output) + where


class Clock:
    """How long the guest may go on: a test that hangs is cut off then, and does not take the other results with it."""

    def __init__(self, seconds, least):
        self.end = time.monotonic() + seconds
        self.least = least

    def is_over(self):
        return time.monotonic() >= self.end

    def limit(self, test):
        return min(test["timeout"], max(self.end - time.monotonic(), self.least))


def verdict(test, status, output):
    if status is None:
        return "failed", f"did not end within {test['timeout']:.0f} s"
    if status == test["skip_status"] or (test["skip_pattern"] and status == 0 and re.search(test["skip_pattern"], output)):
        return "skipped", ""
    return ("passed", "") if status == 0 else ("failed", f"status {status}")


def run(test, clock):
    """A test with a process of its own."""
    say("start", test=test["name"])
    began = time.monotonic()
    limit = clock.limit(test)
    unplug = Unplug() if test.get("unplug") else None
    if unplug:
        unplug.start()
    try:
        status, output = execute(test, [], limit)
    except OSError as error:
        status, output = 127, str(error)
    result, reason = verdict(test, status, output)
    if unplug:
        unplug.finish()
        output += f"\n{unplug.count} times a CPU went offline\n"
        if result == "passed" and (unplug.problem or unplug.count == 0):
            result, reason = "failed", unplug.problem or "no CPU went offline"
    seconds = round(time.monotonic() - began, 1)
    if status is None and limit < test["timeout"]:
        return say("cut", test=test["name"], seconds=seconds, output=output[-TAIL:])
    say("result", test=test["name"], result=result, reason=reason, seconds=seconds,
        output=output[-TAIL:] if result == "failed" else output[-300:])


RESULTS = {"OK": "passed", "passed": "passed", "FAILED": "failed", "SKIPPED": "skipped", "skipped": "skipped"}


def reported(test, output):
    """Argument -> (result, what was written since the one before) of the parts that have ended."""
    found, place = {}, 0
    for match in re.finditer(test["line"], output, re.MULTILINE):
        if match["part"] in test["parts"]:
            found.setdefault(match["part"], (RESULTS[match["result"]], output[place : match.end()]))
        place = match.end()
    return found


def run_parts(test, clock):
    """Where the process ends or is killed, the first part that has no result is what failed; the others go on without it."""
    say("start", test=test["name"])
    left = dict(test["parts"])  # argument -> name
    while left and not clock.is_over():
        limit = clock.limit(test)
        arguments = [test["join"] + ":".join(left)] if test["join"] else list(left)
        status, output = execute(test, arguments, limit, lambda text: len(reported(test, text)))
        found = reported({**test, "parts": left}, output)
        for part, (result, text) in found.items():
            say("result", test=left.pop(part), result=result, reason="status 1" if result == "failed" else "", seconds=0,
                output=text[-TAIL:] if result == "failed" else text[-300:] if "env." in test["name"] else "")
        if not left:
            return
        if status is None and limit < test["timeout"]:
            return say("cut", test=next(iter(left.values())), output=output[-TAIL:])
        reason = f"did not end within {test['timeout']:.0f} s" if status is None else f"ended with status {status}"
        say("result", test=left.pop(next(iter(left))), result="failed", reason=reason, seconds=0, output=output[-TAIL:])


def run_all(tests, clock, workers):
    """So many side by side."""
    waiting = queue.SimpleQueue()
    for test in tests:
        waiting.put(test)

    def work():
        with contextlib.suppress(queue.Empty):
            while not clock.is_over():
                test = waiting.get_nowait()
                (run_parts if "parts" in test else run)(test, clock)

    threads = [threading.Thread(target=work) for _ in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


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
    clock = Clock(plan["seconds"], plan.get("least", LEAST))
    calm = [test for test in plan["tests"] if not test.get("unplug")]
    run_all([test for test in calm if test.get("alone")], clock, 1)
    run_all([test for test in calm if not test.get("alone")], clock, plan.get("workers", 1))
    run_all([test for test in plan["tests"] if test.get("unplug")], clock, 1)
    say("kernel", lines=kernel_complaints())
    say("end")


if __name__ == "__main__":
    main()
