# SPDX-License-Identifier: MIT OR Apache-2.0
"""`terrace profile -- PROGRAM`: the table is read when the program exits, while it is still there.

ptrace stops the program's first thread at its exit; signals go on to it as they come.
"""

import os
import signal
from collections.abc import Callable

from terrace import launch
from terrace.debug import ptrace
from terrace.errors import TerraceError
from terrace.profile.switch import PERIOD
from terrace.run import preload_environment, preloadable

_EXEC, _EXIT, _GROUP_STOP = 4, 6, 128  # PTRACE_EVENT_...; the last one is PTRACE_EVENT_STOP
_STOPS = (signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)


class Tracer:
    """Calls `started` at each exec, and `exiting`, with the program's number."""

    def __init__(self, started: Callable[[int], None], exiting: Callable[[int], None]) -> None:
        self._started, self._exiting = started, exiting

    def attach(self, pid: int) -> None:
        try:
            ptrace.seize_until_exit(pid)
        except OSError as error:
            raise TerraceError(f"the program can not be watched: {error.strerror}") from None

    def stopped(self, pid: int, status: int) -> bool:
        """Whether it was stopped for the tracer only, and goes on."""
        event, number = status >> 16, os.WSTOPSIG(status)
        if event == _GROUP_STOP and number in _STOPS:
            ptrace.listen(pid)
            return False
        if event == _EXEC:
            self._started(pid)
        elif event == _EXIT:
            self._exiting(pid)
        ptrace.go_on(pid, 0 if event else number)
        return True


def run(command: list[str], library: str, setting: str | None, tracer: Tracer) -> launch.Ending:
    """Terrace is preloaded, and samples."""
    with preloadable(library) as path:
        environment = preload_environment(path)
        if setting is not None or b"TERRACE_PROFILE" not in environment:
            environment[b"TERRACE_PROFILE"] = (setting or PERIOD).encode()
        return launch.launch(command, environment, tracer)
