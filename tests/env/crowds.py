# SPDX-License-Identifier: MIT OR Apache-2.0
"""Cases: very many threads, two copies of the library, control groups, a system without /sys or /proc."""

import contextlib
import os
import shutil
import tempfile
import time

from harness import Skip

MANY = 10000


def ten_thousand_threads(h):
    for setting in h.settings():
        command = [h.program("many_threads"), str(MANY)]
        if h.execute(setting, command).returncode == 77:
            raise Skip(f"no {MANY} threads with {setting.name}")
        h.run(setting, command)


def memory_of_fifteen_thousand_threads(h):
    """On rung thread each has a slot of 8 KiB, which the next thread gets. Most of the rest is its stack: 15 and 7 KiB with glibc."""
    command = [h.program("many_threads"), "15000"]
    if h.execute(h.glibc(), command).returncode == 77:
        raise Skip("no 15,000 threads here")
    h.run(h.terrace("thread"), [*command, "48", "16"])


def second_copy(h):
    """Two copies of the object in one process: the first one that is loaded is malloc, the other one stays out of its way."""
    with tempfile.TemporaryDirectory() as directory:
        copy = shutil.copy(h.preload, os.path.join(directory, "libterrace-copy.so"))
        for setting in h.rungs():
            both = h.terrace(setting.name)
            both.preload = f"{h.preload}:{copy}"
            for program in ["workout", "fork_storm", "vfork_child", "thread_exit", "after_main"]:
                words = [h.program(program)] + (["return"] if program == "after_main" else [])
                h.run(both, words, stdout=r"(?s).*")
            h.run(setting, [h.program("dlopen_terrace"), copy])


@contextlib.contextmanager
def group(controller, **settings):
    """A control group of version 1; its path. What is still in it at the end is moved up."""
    root = f"/sys/fs/cgroup/{controller}"
    path = f"{root}/env-test-{os.getpid()}"
    try:
        os.mkdir(path)
    except OSError as error:
        raise Skip(f"no control group of {controller}: {error}") from error
    try:
        for name, value in settings.items():
            with open(f"{path}/{controller}.{name}", "w", encoding="ascii") as file:
                file.write(str(value))
        yield path
    except PermissionError as error:
        raise Skip(str(error)) from error
    finally:
        for _ in range(50):  # a killed process leaves a little later
            with contextlib.suppress(OSError):
                os.rmdir(path)
                break
            time.sleep(0.1)


def join(path):
    def enter():
        with open(f"{path}/cgroup.procs", "w", encoding="ascii") as file:
            file.write("0")

    return enter


def memory_control_group(h):
    """What is freed in one size is there for the next one, within the limit; and who takes more is killed, and nobody else."""
    limit, live = 96 << 20, 48
    for setting in h.settings():
        with group("memory", limit_in_bytes=limit) as path:
            h.run(setting, [h.program("memory_group"), "churn", str(live)], before_exec=join(path))
            h.run(setting, [h.program("memory_group"), "exhaust"], status=-9, stdout="taking\n", before_exec=join(path))


def hidden(h, *directories):
    hide = " && ".join(f"mount -t tmpfs none {directory}" for directory in directories)
    command = ["unshare", "-m", "sh", "-c", f'{hide} || exit 77; LD_PRELOAD="$HIDDEN_PRELOAD" exec "$@"', "sh", h.program("workout")]
    if h.execute(h.glibc(), command).returncode != 0:
        raise Skip("mounts can not be hidden here")
    for setting in h.rungs():
        h.run(setting, command, preload_variable="HIDDEN_PRELOAD")


def without_sys(h):
    hidden(h, "/sys")


def without_proc(h):
    hidden(h, "/proc")


def without_proc_and_sys(h):
    hidden(h, "/sys", "/proc")


def musl_refuses(h):
    """A program linked with musl can not load an object that needs glibc: musl's loader says so, and runs nothing."""
    compiler = shutil.which("musl-gcc")
    if not compiler:
        raise Skip("no musl-gcc")
    with tempfile.TemporaryDirectory() as directory:
        program, source = os.path.join(directory, "program"), os.path.join(directory, "program.c")
        with open(source, "w", encoding="ascii") as file:
            file.write("int main(void) { return 0; }\n")
        h.run(h.glibc(), [compiler, source, "-o", program], stdout="")
        h.run(h.glibc(), [program], stdout="")
        h.run(h.terrace(), [program], status=127, stdout="", stderr=r"(?s)Error .*libterrace\.so.*")


ALL = [ten_thousand_threads, memory_of_fifteen_thousand_threads, second_copy, memory_control_group, without_sys, without_proc,
       without_proc_and_sys, musl_refuses]
