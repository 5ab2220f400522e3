# SPDX-License-Identifier: MIT OR Apache-2.0
"""Signals: those sent to `terrace run`, those typed at a terminal, stopping and going on."""

import contextlib
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time

import pytest

from conftest import MAIN, harmless_library

# Says that it is ready, then which signals it gets.
LISTENER = """
import os, signal, sys, time
got = []
for s in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP):
    signal.signal(s, lambda n, f: got.append(n))
print("ready", os.getpid(), flush=True)
end = time.monotonic() + 30
while len(got) < 1 and time.monotonic() < end:
    time.sleep(0.02)
time.sleep(0.2)
print("got", *got, flush=True)
"""


def start(*program: str, **options) -> subprocess.Popen:
    environment = {**os.environ, "TERRACE_LIBRARY": harmless_library()}
    command = [sys.executable, "-I", str(MAIN), "run", "--quiet", "--", *program]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True, **options)


def ready(process: subprocess.Popen) -> int:
    """Waits for the listener; its pid."""
    word, pid = process.stdout.readline().split()
    assert word == "ready"
    return int(pid)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP])
def test_a_signal_sent_to_the_command_reaches_the_program_once(number):
    process = start(sys.executable, "-c", LISTENER)
    ready(process)
    process.send_signal(number)
    assert process.communicate(timeout=40)[0] == f"got {int(number)}\n"
    assert process.returncode == 0


def test_a_signal_that_the_program_does_not_catch_ends_both():
    process = start("sleep", "30")
    time.sleep(0.5)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=40) == -signal.SIGTERM


def test_a_signal_typed_at_the_terminal_reaches_the_program_once():
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ["TERRACE_LIBRARY"] = harmless_library()
        arguments = ["run", "--quiet", "--", sys.executable, "-c", LISTENER]
        os.execv(sys.executable, [sys.executable, "-I", str(MAIN), *arguments])
    output, typed = b"", False
    end = time.monotonic() + 40
    while not re.search(rb"got.*\n", output) and time.monotonic() < end:
        if select.select([terminal], [], [], 1)[0]:
            with contextlib.suppress(OSError):
                output += os.read(terminal, 1000)
        if not typed and b"ready" in output:
            typed = True
            os.write(terminal, b"\x03")
    os.close(terminal)
    os.waitpid(pid, 0)
    assert b"got 2\r\n" in output


def test_the_command_stops_and_goes_on_with_the_program():
    process = start(sys.executable, "-c", LISTENER)
    program = ready(process)
    os.kill(program, signal.SIGSTOP)
    _, status = os.waitpid(process.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status)
    process.send_signal(signal.SIGCONT)
    process.send_signal(signal.SIGUSR1)
    assert process.communicate(timeout=40)[0] == f"got {int(signal.SIGUSR1)}\n"


def test_the_program_starts_with_the_callers_signal_mask_and_dispositions():
    show = (
        "import re; print(*re.findall(r'Sig(?:Blk|Ign):\\s(.*)', open('/proc/self/status').read()))"
    )
    command = [sys.executable, "-I", "-c", show]
    plain = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    through = start(*command).communicate(timeout=40)[0]
    assert through == plain


def test_a_program_can_be_traced_from_its_first_instruction(tmp_path):
    trace = f"""
import os, sys, time
sys.path.insert(0, {str(MAIN.parent.parent)!r})
from terrace import launch
class Late:
    def attach(self, pid):
        time.sleep(0.3)
        print("ran" if os.path.exists("written") else "waits", flush=True)
    def stopped(self, pid, status):
        return False
print(launch.launch(["sh", "-c", "echo > written"], os.environb, Late()).status)
"""
    command = [sys.executable, "-I", "-c", trace]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout == "waits\n0\n" and (tmp_path / "written").exists()


def test_an_ignored_signal_stays_ignored():
    def ignore() -> None:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)

    process = start("sh", "-c", "kill -HUP $$; echo alive", preexec_fn=ignore)
    assert process.communicate(timeout=40)[0] == "alive\n"


def test_no_second_core_file_is_written_for_a_program_that_died(tmp_path):
    import resource

    def allow() -> None:
        hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
        resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))

    process = start("sh", "-c", "kill -SEGV $$", cwd=tmp_path, preexec_fn=allow)
    assert process.wait(timeout=40) == -signal.SIGSEGV
    assert len(list(tmp_path.glob("core*"))) <= 1
