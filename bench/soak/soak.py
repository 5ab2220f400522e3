# SPDX-License-Identifier: MIT OR Apache-2.0
"""What redis, postgresql and memcached hold after half an hour under load, and after a spike, beside glibc.

    ./terrace bench soak redis --minutes 30
"""

import argparse
import contextlib
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import hardware
import postgresql
from interleave import Subject, glibc, preloaded
from loads import Loaded, MemcachedLoad, PostgresqlLoad, RedisLoad, made_cluster
from recipe import find
from report import ROOT
from server import Server, serving
from watch import REAL_TIME, SETTLED_MINUTES, Clock, Series, Soaked, Spiked, all_good, evaluate, held, mib, watch_spike
from workload import Failed

SAMPLES_PER_MINUTE = 12


@dataclass
class Running:
    """One server under one allocator."""

    name: str
    server: Server
    loaded: Loaded
    series: Series
    operations: int = 0

    def held(self) -> int:
        return held(self.server.pid())


def soak(all_of: list[Running], minutes: int, minute: float, clock: Clock = REAL_TIME) -> None:
    """Steps of the load, the same for every server, in turn; a sample of each in between. `minute`: its length in seconds."""
    began = clock.now()
    steps = minutes * all_of[0].loaded.steps_per_minute
    next_sample = 0.0
    for number in range(steps):
        at = number * minute / all_of[0].loaded.steps_per_minute
        passed = clock.now() - began
        if passed < at:
            clock.sleep(at - passed)
        elif passed >= minutes * minute:
            break  # a machine too slow for the rate: the time counts
        for one in all_of:
            one.operations += one.loaded.step(number)
        if (passed := clock.now() - began) >= next_sample:
            for one in all_of:
                one.series.add(min(passed, minutes * minute - minute / 1000), one.held())
            next_sample = passed + minute / SAMPLES_PER_MINUTE


def spike(one: Running) -> Spiked | None:
    ways = one.loaded.spike()
    return watch_spike(*ways, one.held) if ways else None


def soaked_line(name: str, result: Soaked) -> str:
    return (
        f"{name:10} {mib(result.settled):>8} {mib(result.end):>8} {result.growth:8.3f} {mib(result.largest):>8} "
        f"{result.operations:>12,}  {'' if result.good else 'GROWS'}"
    ).rstrip()


def spiked_line(name: str, result: Spiked) -> str:
    seconds = f"{result.seconds:8.2f}" if result.seconds is not None else "       -"
    return (
        f"{name:10} {mib(result.before):>8} {mib(result.top):>8} {mib(result.after):>8} {seconds}  "
        f"{'' if result.good else 'NOT GIVEN BACK'}"
    ).rstrip()


def run(
    build: Path, subjects: list[Subject], make: Callable[[Subject, Path], Loaded], minutes: int, minute: float = 60.0
) -> dict[str, list[Soaked | Spiked | None]]:
    """Name -> what came of the soak and of the spike."""
    with contextlib.ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="terrace-soak-")))
        all_of: list[Running] = []
        for subject in subjects:
            inner = scratch / subject.name
            inner.mkdir()
            loaded = make(subject, inner)
            folder = stack.enter_context(postgresql._socket_folder())
            server = stack.enter_context(serving(build, loaded.preloaded(subject), loaded.service(folder)))
            loaded.begin(folder)
            all_of.append(Running(subject.name, server, loaded, Series()))
        soak(all_of, minutes, minute)
        results: dict[str, list[Soaked | Spiked | None]] = {
            one.name: [evaluate(one.series, minutes, minute, one.operations)] for one in all_of
        }
        for one in all_of:
            results[one.name].append(spike(one))
            one.loaded.end()
            one.server.stop()
    return results


def show(results: dict[str, list[Soaked | Spiked | None]], minutes: int) -> None:
    print(hardware.sentence())
    print(f"held, MiB: after {min(SETTLED_MINUTES, minutes)} minutes, after {minutes}, their ratio, at most; operations")
    for name, (soaked, _) in results.items():
        assert isinstance(soaked, Soaked)
        print(soaked_line(name, soaked))
    spikes = {name: two for name, (_, two) in results.items() if isinstance(two, Spiked)}
    if spikes:
        print("held, MiB: before the spike, at its top, 10 s after it; seconds until 150 MiB")
        for name, one in spikes.items():
            print(spiked_line(name, one))


def maker(server: str, build: Path, stack: contextlib.ExitStack) -> Callable[[Subject, Path], Loaded]:
    if server == "postgresql":
        if lacking := postgresql.missing():
            raise Failed(f"postgresql: there is no {lacking}")

        def make(_subject: Subject, scratch: Path) -> Loaded:
            scratch.parent.chmod(0o711)
            return PostgresqlLoad(stack.enter_context(made_cluster(build, scratch)))

        return make
    program = {"redis": "redis-server", "memcached": "memcached"}[server]
    if find(program) is None:
        raise Failed(f"{program} is not installed")
    kind = RedisLoad if server == "redis" else MemcachedLoad
    return lambda _subject, _scratch: kind()


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="terrace bench soak", description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("server", choices=("redis", "postgresql", "memcached"))
    parser.add_argument("--minutes", type=int, default=30)
    parser.add_argument("--library", type=Path, default=ROOT / "build" / "release" / "libterrace.so")
    options = parser.parse_args(argv)
    build = ROOT / "build" / "release"
    subjects = [preloaded("terrace", options.library), glibc()]
    try:
        with contextlib.ExitStack() as stack:
            results = run(build, subjects, maker(options.server, build, stack), options.minutes)
    except Failed as failed:
        print(f"soak {options.server}: {failed}", file=sys.stderr)
        return 1
    show(results, options.minutes)
    return 0 if all_good(results["terrace"]) else 1
