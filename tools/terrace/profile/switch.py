# SPDX-License-Identifier: MIT OR Apache-2.0
"""`terrace profile --start PID`: one word of a running process is written, nothing is injected."""

import os

from terrace.debug import ptrace
from terrace.debug.live import LiveTarget
from terrace.debug.sampled.stacks import Reader
from terrace.debug.sampled.table import STACK_COPIES
from terrace.errors import TerraceError
from terrace.messages import say
from terrace.report.cells import human_bytes

PERIOD = "512k"
_SUFFIXES = {"k": 10, "m": 20, "g": 30}


def bytes_of(text: str | None) -> int:
    """Of 524288, 512k, 2m."""
    text = text or PERIOD
    number, shift = text.lower(), 0
    if number[-1:] in _SUFFIXES:
        number, shift = number[:-1], _SUFFIXES[number[-1]]
    if not number.isdecimal():
        raise TerraceError(f"--period {text}: a number of bytes, 524288 or 512k", 2)
    return int(number) << shift


def start(pid: int, period: int, frames: bool) -> int:
    """A period of 0 ends the sampling; what was sampled stays until it is freed."""
    target = LiveTarget(pid)
    reader = Reader(target)
    try:
        memory = os.open(f"/proc/{pid}/mem", os.O_WRONLY)
    except OSError:
        raise ptrace.refusal(pid) from None
    try:
        for table in reader.tables:
            mode = 0 if frames else STACK_COPIES
            for name, value in (("mode", mode), ("period", table.next_word(period))):
                address, size = table.word(name)
                os.pwrite(memory, value.to_bytes(size, "little"), address)
    except OSError as error:
        raise TerraceError(f"{target.title} can not be written to: {error.strerror}") from None
    finally:
        os.close(memory)
    if period:
        say(f"{target.title} samples one in {human_bytes(period)}; see `terrace profile {pid}`")
    else:
        say(f"{target.title} does not sample any more")
    return 0
