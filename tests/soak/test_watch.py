# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the soak says of made-up servers: one that stays as it is, one that grows, one that gives nothing back."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench" / name) for name in ("soak", "apps", "common")]

import hardware
import soak
import watch
from watch import MIB, Series, Soaked, Spiked

# Obeys words: "grow N" makes N MiB more live and touches them, "drop" frees all; mmap, so that what is freed is given back.
SERVER = """
import mmap, sys
held = []
print("ready", flush=True)
for line in sys.stdin:
    word, _, size = line.partition(" ")
    if word == "grow":
        m = mmap.mmap(-1, int(size) << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        for at in range(0, len(m), 4096):
            m[at] = 1
        held.append(m)
    elif word.strip() == "drop":
        while held:
            held.pop().close()
    print("done", flush=True)
"""


class MadeUp:
    """A server of the kind above, with the interface of server.Server and of loads.Loaded as far as they are used."""

    steps_per_minute = 12

    def __init__(self, grows: int = 0, keeps: bool = False) -> None:
        self.grows, self.keeps = grows, keeps
        self._process = subprocess.Popen(
            [sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._said("ready")
        self.say("grow 20")

    def _said(self, word: str) -> None:
        assert self._process.stdout is not None
        assert self._process.stdout.readline().strip() == word

    def say(self, text: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(text + "\n")
        self._process.stdin.flush()
        self._said("done")

    def pid(self) -> int:
        return self._process.pid

    def step(self, _number: int) -> int:
        if self.grows:
            self.say(f"grow {self.grows}")
        return 3

    def spike(self):
        return (lambda: self.say("grow 200")), (lambda: None if self.keeps else self.say("drop"))

    def stop(self) -> None:
        self._process.kill()
        self._process.communicate()


@pytest.fixture
def running():
    servers: list[MadeUp] = []

    def start(**how) -> soak.Running:
        servers.append(MadeUp(**how))
        return soak.Running("made-up", servers[-1], servers[-1], Series())

    yield start
    for server in servers:
        server.stop()


def soaked(one: soak.Running, minutes: int = 7) -> Soaked:
    soak.soak([one], minutes, 0.6)
    return watch.evaluate(one.series, minutes, 0.6, one.operations)


def test_a_server_that_stays_as_it_is_passes(running):
    result = soaked(running())
    assert result.good
    assert 0.99 < result.growth < 1.01
    assert result.settled > 20 * MIB


def test_a_server_that_grows_does_not_pass(running):
    result = soaked(running(grows=1))
    assert not result.good
    assert result.end > result.settled + 5 * MIB
    assert "GROWS" in soak.soaked_line("x", result)


def test_every_server_gets_the_same_steps_and_is_sampled(running):
    both = [running(), running()]
    soak.soak(both, 2, 0.6)
    assert both[0].operations == both[1].operations > 0
    assert len(both[0].series.samples) == len(both[1].series.samples) > 2


def test_processes_below_the_server_count(running):
    one = running()
    before = one.held()
    code = "x = bytearray(50 << 20); print('ready', flush=True); input()"
    with subprocess.Popen(
        ["sh", "-c", f'{sys.executable} -c "{code}"; true'],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as shell:  # fmt: skip
        assert shell.stdout is not None
        shell.stdout.readline()
        assert watch.held(shell.pid) > 50 * MIB
        shell.communicate("\n")
    assert abs(one.held() - before) < 5 * MIB
    assert watch.held(os.getpid()) >= before


def test_shared_memory_is_not_the_allocators():
    code = (
        "import mmap; m = mmap.mmap(-1, 50 << 20); m[:] = bytes(50 << 20); "
        "print('ready', flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert watch.held(process.pid) < 40 * MIB
        process.communicate("\n")


def spiked(one: soak.Running) -> Spiked:
    return watch.watch_spike(*one.loaded.spike(), one.held, seconds=1.0)


def test_a_spike_that_is_given_back_passes(running):
    result = spiked(running())
    assert result.good
    assert result.top > 200 * MIB
    assert result.after < 100 * MIB
    assert "NOT" not in soak.spiked_line("x", result)


def test_a_spike_that_is_kept_does_not_pass(running):
    result = spiked(running(keeps=True))
    assert not result.good
    assert result.after > 200 * MIB
    assert "NOT GIVEN BACK" in soak.spiked_line("x", result)


def test_a_spike_that_comes_back_does_not_pass():
    """Under the bound at first, over it at the end."""
    began = time.monotonic()
    result = watch.watch_spike(
        lambda: None, lambda: None, lambda: (1 if time.monotonic() - began < 0.3 else 500) * MIB, seconds=0.6
    )
    assert not result.good


def test_the_growth_is_from_the_fifth_minute_on():
    series = Series([(60 * i + 30, (200 if i == 4 else 100 if i < 4 else 219) * MIB) for i in range(30)])
    result = watch.evaluate(series, 30, 60, 1)
    assert (result.settled, result.end) == (200 * MIB, 219 * MIB)
    assert result.good
    assert not Soaked(100, 111, 111, 1).good


def test_a_minute_without_a_sample_is_an_error():
    with pytest.raises(ValueError, match="minute 7"):
        Series([(1.0, 1)]).around(7, 60)


def test_the_result_is_that_of_all_parts():
    good, bad = Soaked(100, 100, 100, 1), Spiked(1, 2, 3, None)
    assert watch.all_good([good, None])
    assert not watch.all_good([good, bad])


def test_what_is_shown_names_the_processor(monkeypatch, capsys):
    monkeypatch.setattr("hardware.processor", lambda: hardware.Processor("of a name"))
    soak.show({"terrace": [Soaked(1.0, 1.0, 1.0, 1), None]}, 30)
    assert capsys.readouterr().out.startswith("Measured on of a name, ")
