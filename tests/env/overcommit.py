# SPDX-License-Identifier: MIT OR Apache-2.0
"""vm.overcommit_memory for the length of a `with`. It belongs to the whole machine, so it is restored whatever happens: by the
`with`, and should this process be killed, by a guardian process that waits for its end."""

import contextlib
import os
import signal

from harness import Skip

SETTING = "/proc/sys/vm/overcommit_memory"


def write_setting(value):
    with open(SETTING, "w", encoding="ascii") as file:
        file.write(value)


def start_guardian(value):
    """A process that restores `value` when the write end of the pipe is closed, by us or by our end. (pid, write end)"""
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.setsid()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        os.close(write_end)
        os.read(read_end, 1)
        write_setting(value)
        os._exit(0)
    os.close(read_end)
    return pid, write_end


@contextlib.contextmanager
def overcommit(value):
    try:
        with open(SETTING, encoding="ascii") as file:
            before = file.read().strip()
        write_setting(before)
    except OSError as error:
        raise Skip(f"{SETTING}: {error.strerror}") from error
    pid, write_end = start_guardian(before)
    try:
        write_setting(value)
        yield
    finally:
        write_setting(before)
        os.close(write_end)
        os.waitpid(pid, 0)
