# SPDX-License-Identifier: MIT OR Apache-2.0
"""The cases: functions that take a Harness. Those without a function of their own are programs that run on every rung."""

import glob
import json
import os
import re
import resource
import shutil
import tempfile

import address_space
import crowds
import limits
import observers
import residency
import sandboxes
import stacks
from harness import Failure, Skip
from overcommit import overcommit
from sandboxes import rung_in

MIB = 1 << 20

# case -> command line; {} stands for the directory of the programs
ON_EVERY_RUNG = {
    "fork_storm": ["fork_storm"],
    "fork_handlers_that_allocate": ["fork_handlers"],
    "fork_beside_stdio": ["fork_stdio"],
    "vfork_children_that_allocate": ["vfork_child"],
    "vfork_children_of_vfork_children": ["vfork_nested"],
    "vfork_children_that_fork": ["vfork_fork"],
    "blocks_of_other_homes": ["other_homes"],
    "spawn_system_popen": ["spawn"],
    "dlopen_and_dlclose": ["dlopen_loop", "{}/libenv_plugin.so"],
    "dlopen_with_deepbind": ["deepbind", "{}/libenv_plugin.so", "libenv_leaf.so"],
    "thread_exit": ["thread_exit"],
    "pthread_exit_in_main": ["pthread_exit_in_main"],
    "address_space_limit_raised": ["limit_raised"],
    "before_main": ["before_main"],
    "clock_that_allocates": ["own_clock"],
    "signals": ["signal_storm"],
    "workout": ["workout"],
    "threads_not_registered_with_rseq": ["rseq_unregistered"],
    "thread_storm": ["thread_storm"],
    "handlers_that_allocate": ["handler_allocates"],
}

AFTER_RETURN = ["thread-local object", "atexit within atexit", "atexit", "static object", "static object of priority 101",
                "destructor", "destructor of priority 101", "fini_array", "library destructor"]
AFTER_MAIN = {"return": AFTER_RETURN, "exit": AFTER_RETURN, "thread": [line for line in AFTER_RETURN if "local" not in line],
              "quick_exit": ["at_quick_exit"]}


def after_main(h):
    for setting in h.settings():
        for how, lines in AFTER_MAIN.items():
            out = h.run(setting, [h.program("after_main"), how], stdout=r"(?s).*")
            if sorted(out.splitlines()) != sorted(lines):
                raise Failure(f"{setting.name}: after {how}: {out!r}")


def dlopen_of_terrace(h):
    h.run(h.glibc(), [h.program("dlopen_terrace"), h.preload])
    for setting in h.rungs():  # a second copy beside the preloaded one would be the same object
        setting.preload = ""
        h.run(setting, [h.program("dlopen_terrace"), h.preload])


def fork_in_a_handler_beside_threads(h):
    """glibc's own malloc hangs here."""
    for setting in h.rungs():
        h.run(setting, [h.program("fork_in_handler")])


def clone_children_that_allocate(h):
    """glibc's own malloc damages blocks here: child and parent share what it keeps for a thread."""
    for setting in h.rungs():
        h.run(setting, [h.program("clone_child")])


def environment_that_is_gone(h):
    for setting in [h.glibc(), h.terrace(), h.terrace(TERRACE_STATS="text")]:
        for how in ["frame", "block", "unmapped", "null"]:
            report = r"(?s).*core.*\n" if setting.environment else ""
            h.run(setting, [h.program("environ_gone"), how], stdout="ok\n", stderr=report)


def no_keys_left(h):
    for setting in h.rungs():
        setting.preload = ""
        h.run(setting, [h.program("no_keys_left"), h.preload])


def fork_of_one_thread(h):
    """On every rung it works; and a child that does nothing shares what the allocator has written with its parent."""
    pages = {}
    for setting in h.settings():
        out = h.run(setting, [h.program("fork_alone")])
        pages[setting.name] = int(re.search(r"^pages (\d+)$", out, re.MULTILINE).group(1))
    for name, count in pages.items():
        if count > pages["glibc"] + 20:
            raise Failure(f"{name}: a child touches {count} pages, {pages['glibc']} with glibc")


def limited(which, limit):
    return lambda: resource.setrlimit(which, (limit, limit))


def memory_limit(h, which):
    for setting in h.settings():
        limits = [(64 * MIB, 0), (256 * MIB, 0), (256 * MIB, 4)]
        if setting.name == "mm_cid":
            limits.append((1024 * MIB, 0))
        for limit, threads in limits:
            # glibc reserves 64 MiB of addresses for each thread.
            least = 1 if setting.name == "glibc" and threads else limit * 2 // 5 - threads * MIB
            h.run(setting, [h.program("exhaust"), str(least), str(threads)], before_exec=limited(which, limit))


def address_space_limit(h):
    memory_limit(h, resource.RLIMIT_AS)


def data_limit(h):
    memory_limit(h, resource.RLIMIT_DATA)


def small_address_space_runs(h):
    """The least in which glibc can run the program must do for Terrace, but for 16 MiB."""

    def runs(setting, limit):
        command = [h.program("workout"), "5", "0"]
        return h.execute(setting, command, before_exec=limited(resource.RLIMIT_AS, limit)).returncode == 0

    least = next(limit for limit in range(4 * MIB, 200 * MIB, 2 * MIB) if runs(h.glibc(), limit))
    for setting in h.rungs():
        if not runs(setting, least + 16 * MIB):
            raise Failure(f"{setting.name}: needs more than {least + 16 * MIB} bytes of addresses, glibc {least}")


def no_overcommit(h):
    with overcommit("2"):
        h.run(h.terrace(), [h.program("workout"), "5"])
        h.run(h.terrace(), [h.program("exhaust"), str(100 * MIB)], before_exec=limited(resource.RLIMIT_AS, 256 * MIB))


def checks(h):
    """Valid programs do not notice TERRACE_CHECK; a value that is none is told and ignored."""
    for program in ["fork_storm", "fork_handlers", "vfork_child", "spawn", "thread_exit", "before_main", "signal_storm", "workout"]:
        h.run(h.terrace(), [h.program(program)], TERRACE_CHECK="1,sample:3,quarantine:256K")
    # What is done for stacks, at the start of a process, leaves its environment and arguments alone.
    for value in ["1", "1,sample:1"]:
        h.run(h.terrace(), ["sh", "-c", "sh -c 'echo $KEPT $0 ok' first"], stdout="kept first ok\n", KEPT="kept", TERRACE_CHECK=value)
    line = r"terrace: TERRACE_CHECK yes: none of 0, 1\[,sample:N\]\[,quarantine:BYTES\]; ignored\n"
    h.run(h.terrace(), [h.program("workout"), "3"], TERRACE_CHECK="yes", stderr=line)


def rungs_are_forced(h):
    for setting in h.rungs():
        out = h.run(setting, [h.program("workout"), "3"])
        if rung_in(out) != setting.name:
            raise Failure(f"asked for {setting.name}, got {rung_in(out)}")


def rseq_not_registered_by_libc(h):
    for setting in [h.glibc(), h.terrace(), *h.rungs()]:
        for program in ["workout", "fork_storm", "thread_exit"]:
            h.run(setting, [h.program(program)], GLIBC_TUNABLES="glibc.pthread.rseq=0")


def rseq_is_the_programs(h):
    """With libc's registration switched off rseq belongs to the program; Terrace takes an area only if it is asked to."""
    tunable = {"GLIBC_TUNABLES": "glibc.pthread.rseq=0"}
    for setting in [h.glibc(), h.terrace(), h.terrace("getcpu"), h.terrace("thread")]:
        result = h.execute(setting, [h.program("rseq_of_its_own")], **tunable)
        if result.returncode == 77:
            raise Skip("no rseq here")
        out = h.run(setting, [h.program("rseq_of_its_own")], **tunable)
        if setting.preload and rung_in(out) not in ["getcpu", "thread"]:
            raise Failure(f"rung {rung_in(out)} although libc leaves rseq to the program")
    for setting in h.rungs():  # asked for, and then that is what there is
        out = h.run(setting, [h.program("workout"), "20"], **tunable)
        if rung_in(out) != setting.name:
            raise Failure(f"asked for {setting.name}, got {rung_in(out)}")


def one_cpu(h):
    cpu = min(os.sched_getaffinity(0))
    for setting in h.settings():
        for program in ["workout", "signal_storm", "fork_storm", "vfork_child"]:
            h.run(setting, [h.program(program)], before_exec=lambda: os.sched_setaffinity(0, {cpu}))


def layouts(h):
    """Where the kernel puts mappings: bottom up with an unlimited stack, the same each time without randomisation."""
    for setting in h.settings():
        h.run(setting, [h.program("workout")], before_exec=limited(resource.RLIMIT_STACK, resource.RLIM_INFINITY))
        if shutil.which("setarch"):
            h.run(setting, ["setarch", "-R", h.program("workout")])
            h.run(setting, ["setarch", "-L", h.program("workout")])


def files(h):
    """None stays open, and none needs to be."""
    expected = h.run(h.glibc(), [h.program("workout"), "3"])
    for setting in h.rungs():
        out = h.run(setting, [h.program("workout"), "3"])
        if out.replace(f"rung {setting.name}\n", "") != expected:
            raise Failure(f"{setting.name}: {out!r}, glibc {expected!r}")
        h.run(setting, ["sh", "-c", 'exec "$0" <&- >&- 2>&-', h.program("workout")], stdout="")


def under_valgrind(h):
    if not shutil.which("valgrind"):
        raise Skip("no valgrind")
    for setting in [h.glibc(), h.terrace(), h.terrace("getcpu"), h.terrace("thread")]:
        h.run(setting, ["valgrind", "--quiet", "--error-exitcode=9", "true"], stdout="")
        h.run(setting, ["valgrind", "--quiet", h.program("workout"), "1", "2"], stderr=r"(?s).*")


def under_qemu(h):
    qemu = shutil.which("qemu-" + os.uname().machine)
    if not qemu:
        raise Skip("no qemu-user")
    h.run(h.glibc(), [qemu, h.program("workout"), "2", "2"])
    for setting in [h.terrace(), h.terrace("thread")]:
        out = h.run(setting, [qemu, "-E", f"LD_PRELOAD={h.preload}", h.program("workout"), "2", "2"], preload_variable="UNUSED")
        print(f"  {setting.name}: rung {rung_in(out)}", flush=True)


def unknown_values(h):
    values = {
        "TERRACE_RUNG": ["nonsense", "mm_cid ", "MM_CID", "5"],
        "TERRACE_PLACEMENT": ["nonsense", "random:2", "random:x", "random:", "oddly", "random:-1", "random:0.1234567890x"],
        "TERRACE_BUDGET": ["much", "-1", "12Q", "1.5M", "99999999999999999999", "M"],
        "TERRACE_DECAY_MS": ["soon", "-1", "1s"],
        "TERRACE_STATS": ["nonsense", "yaml"],
    }
    for name, wrong in values.items():
        for value in wrong:
            pattern = rf"terrace: {name} {re.escape(value)}: [^\n]+\n"
            h.run(h.terrace(**{name: value}), [h.program("workout"), "1", "0"], stderr=pattern)
    both = h.terrace(TERRACE_PLACEMENT="nonsense", TERRACE_BUDGET="much")
    h.run(both, [h.program("workout"), "1", "0"], stderr=r"(terrace: TERRACE_(PLACEMENT|BUDGET) [^\n]+\n){2}")


def known_values(h):
    values = {
        "TERRACE_PLACEMENT": ["none", "punctuated", "odd", "random", "random:0", "random:1", "random:0.05", "random:.5"],
        "TERRACE_BUDGET": ["1", "4096", "64K", "1M", "2G"],
        "TERRACE_DECAY_MS": ["0", "1", "100000"],
    }
    for name, right in values.items():
        for value in right:
            h.run(h.terrace(**{name: value}), [h.program("workout"), "20"])


def statistics_at_exit(h):
    with tempfile.TemporaryDirectory() as directory:
        h.run(h.terrace(TERRACE_STATS_FILE=f"{directory}/%p.json"), ["ls", "/"], stdout=r"(?s).+")
        written = glob.glob(f"{directory}/*.json")
        if len(written) != 1:
            raise Failure(f"TERRACE_STATS_FILE: {written} written")
        with open(written[0], encoding="utf-8") as file:
            report = json.load(file)
        if report["schema"] != 1 or f"{report['pid']}.json" != os.path.basename(written[0]):
            raise Failure(f"TERRACE_STATS_FILE: {report['pid']} in {written[0]}")
        complaint = r"terrace: TERRACE_STATS_FILE [^\n]+\n"
        h.run(h.terrace(TERRACE_STATS_FILE="/nonexistent/file"), ["true"], stdout="", stderr=complaint)
    workout = [h.program("workout"), "3"]
    json.loads(h.execute(h.terrace(TERRACE_STATS="json"), workout).stderr)
    h.run(h.terrace(TERRACE_STATS="text"), workout, stderr=r"(?s).*core.*\n")
    # Many programs close standard error in a handler of their own, which runs before the destructors of libraries.
    h.run(h.terrace(TERRACE_STATS="text"), ["ls", "/"], stdout=r"(?s).+", stderr=r"(?s).*core.*\n")


def static_programs(h):
    if not os.path.exists(os.path.join(h.programs, "env_static_program")):
        raise Skip("no static libc here")
    for setting in [h.glibc(), h.terrace(), h.terrace("thread")]:
        h.run(setting, [h.program("static_program")], stdout="ok\n")


def secure_mode(h):
    """A set-user-id program does not listen to the environment."""
    if os.geteuid() != 0:
        raise Skip("needs root")
    default = rung_in(h.run(h.glibc(), [h.program("secure")]))
    forced = "thread" if default != "thread" else "getcpu"
    if rung_in(h.run(h.glibc(), [h.program("secure")], TERRACE_RUNG=forced)) != forced:
        raise Failure("TERRACE_RUNG has no effect in the first place")
    with tempfile.TemporaryDirectory(dir=h.programs) as directory:
        os.chmod(directory, 0o755)
        copy = shutil.copy(h.program("secure"), directory)
        os.chown(copy, 65534, 65534)
        os.chmod(copy, 0o4755)
        out = h.execute(h.glibc(), [copy], TERRACE_RUNG=forced, TERRACE_STATS="text")
        if "secure 1\n" not in out.stdout:
            raise Skip("set-user-id has no effect here")
        if rung_in(out.stdout) != default or out.stderr:
            raise Failure(f"listens to the environment: {out.stdout!r} {out.stderr!r}")


FUNCTIONS = [after_main, clone_children_that_allocate, fork_in_a_handler_beside_threads, environment_that_is_gone, no_keys_left,
             fork_of_one_thread, dlopen_of_terrace, address_space_limit, data_limit, small_address_space_runs, no_overcommit,
             checks, rungs_are_forced, rseq_not_registered_by_libc, rseq_is_the_programs, one_cpu, layouts, files,
             under_valgrind, under_qemu, unknown_values, known_values, statistics_at_exit, static_programs, secure_mode,
             *sandboxes.ALL, *address_space.ALL, *residency.ALL, *stacks.ALL, *limits.ALL]


def on_every_rung(command):
    def case(h):
        words = [h.program(command[0]), *(word.format(h.programs) for word in command[1:])]
        for setting in h.settings():
            h.run(setting, words)

    return case


ALL = {name: on_every_rung(command) for name, command in ON_EVERY_RUNG.items()} | {f.__name__: f for f in [*FUNCTIONS, *crowds.ALL, *observers.ALL]}
