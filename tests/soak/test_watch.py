# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the soak says of made-up servers: one that stays as it is, one that grows, one that gives nothing back."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench" / name) for name in ("soak", "apps", "common")]

import hardware
import soak
import watch
from watch import MIB, Series, Soaked, Spiked

SECONDS_A_LOOK_TAKES = 0.01


class MadeUpClock(watch.Clock):
    """Goes on when somebody sleeps or works, and never else."""

    def __init__(self) -> None:
        self.at = 1000.0

    def now(self) -> float:
        return self.at

    def sleep(self, seconds: float) -> None:
        self.at += seconds


class MadeUp:
    """A server that holds `size` MiB, with the interface of server.Server and of loads.Loaded as far as they are used."""

    steps_per_minute = 12

    def __init__(self, clock: MadeUpClock, grows: int = 0, keeps: bool = False, seconds_of_a_step: float = 0.5) -> None:
        self.clock, self.grows, self.keeps, self.seconds_of_a_step = clock, grows, keeps, seconds_of_a_step
        self.size = 20

    def step(self, _number: int) -> int:
        self.clock.sleep(self.seconds_of_a_step)
        self.size += self.grows
        return 3

    def spike(self):
        def up() -> None:
            self.size += 200

        def down() -> None:
            self.size -= 0 if self.keeps else 200

        return up, down


class Running(soak.Running):
    def held(self) -> int:
        self.server.clock.sleep(SECONDS_A_LOOK_TAKES)
        return self.server.size * MIB


@pytest.fixture
def clock() -> MadeUpClock:
    return MadeUpClock()


@pytest.fixture
def running(clock):
    def start(**how) -> Running:
        server = MadeUp(clock, **how)
        return Running("made-up", server, server, Series())

    return start


def soaked(one: Running, clock: MadeUpClock, minutes: int = 7) -> Soaked:
    soak.soak([one], minutes, 60, clock)
    return watch.evaluate(one.series, minutes, 60, one.operations)


def test_a_server_that_stays_as_it_is_passes(running, clock):
    result = soaked(running(), clock)
    assert result.good
    assert result.growth == 1
    assert result.settled == 20 * MIB


def test_a_server_that_grows_does_not_pass(running, clock):
    result = soaked(running(grows=1), clock)
    assert not result.good
    assert result.end > result.settled + 5 * MIB
    assert "GROWS" in soak.soaked_line("x", result)


def test_every_server_gets_the_same_steps_and_is_sampled(running, clock):
    both = [running(), running()]
    soak.soak(both, 2, 60, clock)
    assert both[0].operations == both[1].operations == 2 * 12 * 3
    assert len(both[0].series.samples) == len(both[1].series.samples) > 2


def test_of_a_machine_that_is_too_slow_the_time_counts(running, clock):
    began = clock.now()
    one = running(seconds_of_a_step=30)
    soak.soak([one], 2, 60, clock)
    assert 120 <= clock.now() - began < 160
    assert 0 < one.operations < 2 * 12 * 3
    assert one.series.around(2, 60) == 20 * MIB


def test_processes_below_the_server_count():
    code = "x = bytearray(50 << 20); print('ready', flush=True); input()"
    with subprocess.Popen(
        ["sh", "-c", f'{sys.executable} -c "{code}"; true'],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as shell:  # fmt: skip
        assert shell.stdout is not None
        shell.stdout.readline()
        assert watch.held(shell.pid) > 50 * MIB
        assert watch.held(os.getpid()) > 50 * MIB
        shell.communicate("\n")
    assert watch.held(shell.pid) == 0


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


def spiked(one: Running, clock: MadeUpClock) -> Spiked:
    return watch.watch_spike(*one.loaded.spike(), one.held, clock=clock)


def test_a_spike_that_is_given_back_passes(running, clock):
    result = spiked(running(), clock)
    assert result.good
    assert (result.before, result.top, result.after) == (20 * MIB, 220 * MIB, 20 * MIB)
    assert "NOT" not in soak.spiked_line("x", result)


def test_a_spike_that_is_kept_does_not_pass(running, clock):
    result = spiked(running(keeps=True), clock)
    assert not result.good
    assert result.after == 220 * MIB
    assert "NOT GIVEN BACK" in soak.spiked_line("x", result)


def spike_by_time(clock: MadeUpClock, held_after: dict[float, int]) -> Spiked:
    """MiB that are held from so many seconds after the spike on."""
    began = clock.now()

    def held() -> int:
        return MIB * [size for at, size in held_after.items() if at <= clock.now() - began][-1]

    return watch.watch_spike(lambda: None, lambda: None, held, clock=clock)


def test_the_time_until_a_spike_is_given_back_is_told(clock):
    result = spike_by_time(clock, {0: 500, 3: 100})
    assert result.seconds == pytest.approx(3, abs=0.25)


def test_a_spike_that_comes_back_does_not_pass(clock):
    """Under the bound at first, over it at the end."""
    assert not spike_by_time(clock, {0: 1, 3: 500}).good


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
