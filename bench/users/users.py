# SPDX-License-Identifier: MIT OR Apache-2.0
"""Programs that use libumem (OpenZFS's ztest, Varnish, memcached), built on ours: their tests, and a load beside malloc.

    ./terrace bench users                      all of them
    ./terrace bench users varnish --rounds 5   one of them
    ./terrace bench users memcached --no-load  its tests alone

Sources come from the distribution's archive, of pinned versions. What was fetched, built and found is kept in build/users (or
$TERRACE_USERS_DIR); the same command goes on where it was ended, and begins to measure anew when libumem.so has changed.
"""

import argparse
import shutil
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from memcached import Memcached
from openzfs import OpenZfs
from program import Program, Results, Setting
from records import Record, counts, opened, ratios, worse
from report import ROOT, Report
from sources import work_directory
from steps import Library, say
from terrace import build
from terrace.checkout import Checkout
from terrace.errors import TerraceError
from varnish import Varnish
from workload import Failed

PROGRAMS: dict[str, Program] = {program.name: program for program in (OpenZfs(), Varnish(), Memcached())}
PURPOSES = ("users",)  # of tools/terrace/packages.txt: what `terrace bench` installs for this driver
RUN_MINUTES = 6  # of one round of one program, at most
AGAIN = 2  # times at most that a test that failed runs once more


def needs_programs(_arguments: list[str]) -> bool:
    """None of the benchmarks' own: the library alone is built, by main()."""
    return False


def built_library(checkout: Checkout) -> Library:
    with checkout.locked():
        folder = checkout.build / "release"
        if not (folder / "build.ninja").exists():
            build.configure(checkout, "release", {"TERRACE_TESTS": "OFF", "TERRACE_BENCH": "OFF"})
        build.compile_targets(checkout, "release", ("terrace_umem_api",))
    return Library(folder)


def announcement(programs: Sequence[Program], rounds: int, free_gib: float) -> str:
    """Before anything is done."""
    names = ", ".join(program.name for program in programs)
    gib = sum(program.gib for program in programs)
    minutes = sum(program.minutes + rounds * RUN_MINUTES for program in programs)
    return (
        f"{names}: up to {gib:.1f} GiB of disk below {work_directory()} ({free_gib:.0f} GiB are free) and {minutes} minutes on 2 "
        "cores; what was done before is not done again"
    )


def free_gib(folder: Path) -> float:
    while not folder.exists():
        folder = folder.parent
    return shutil.disk_usage(folder).free / 2**30


def run_again(program: Program, library: Library, setting: Setting, base: Results | None, results: dict[str, str]) -> list[str]:
    """Tests that failed, if they passed on malloc, run once more, and more than once where the program says so."""
    found: list[str] = []
    for _ in range(AGAIN):
        failed = worse(base, results) if base is not None else [test for test, result in results.items() if result == "failed"]
        found = found or failed
        if not failed:
            break
        say(f"{program.name}, {setting.name}: once more, one by one: {' '.join(failed)} ...")
        new = program.check_again(library, setting, failed)
        if not new:
            break
        results |= {test: new.get(test, "failed") for test in failed}
    return found


def check(program: Program, library: Library, record: Record) -> None:
    for setting in program.settings:
        if setting.name in record.checks:
            continue
        say(f"{program.name}, {setting.name}: its tests ...")
        began = time.monotonic()
        results = dict(program.check(library, setting))
        again = run_again(program, library, setting, record.checks.get(program.settings[0].name), results)
        record.put_check(setting, results, again)
        passed, failed, skipped = counts(record.checks[setting.name])
        took = time.monotonic() - began
        say(f"{program.name}, {setting.name}: {passed} passed, {failed} failed, {skipped} skipped, {took:.0f} s")


def load(program: Program, library: Library, record: Record, rounds: int) -> None:
    """Each round begins with another setting."""
    settings = list(program.settings)
    for number in range(rounds):
        turn = number % len(settings)
        for setting in settings[turn:] + settings[:turn]:
            if record.has_round(setting, number):
                continue
            values = program.measure(library, setting)
            record.put_round(setting, values)
            rate, rss = values["rate"], values["rss"] / 2**20
            say(f"{program.name}, round {number + 1} of {rounds}, {setting.name}: {rate:,.0f} /s, {rss:,.0f} MiB")


def row(program: Program, record: Record, setting: Setting) -> list[object]:
    base = program.settings[0]
    rounds = record.rounds.get(setting.name, [])
    rate = f"{statistics.median(v['rate'] for v in rounds):,.0f}" if rounds else "-"
    rss = f"{statistics.median(v['rss'] for v in rounds) / 2**20:,.0f}" if rounds else "-"
    beside = ratios(record, setting, base) or "-"
    tests = record.checks.get(setting.name, {})
    passed, failed, skipped = counts(tests)
    return [setting.name, rate, beside, rss, passed, failed, skipped, len(worse(record.checks.get(base.name, {}), tests))]


COLUMNS = ("setting", "rate", "over malloc's", "MiB", "tests passed", "failed", "skipped", "worse than malloc")


def show(programs: Sequence[Program], records: dict[str, Record], report: Report) -> int:
    """The tables; how many tests are worse than on malloc."""
    total = 0
    for program in programs:
        record = records[program.name]
        report.say(f"{program.name}: {program.counts} a second")
        report.table(COLUMNS, [row(program, record, setting) for setting in program.settings])
        base = record.checks.get(program.settings[0].name, {})
        for setting in program.settings[1:]:
            passed = [test for test in record.again.get(setting.name, []) if record.checks[setting.name].get(test) == "passed"]
            if passed:
                report.say(f"passed when they ran once more, {setting.name}: {' '.join(passed)}")
            for test in worse(base, record.checks.get(setting.name, {})) if setting.name in record.checks else ():
                report.say(f"worse, {setting.name}: {test}")
                total += 1
    return total


def arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="terrace bench users", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(PROGRAMS)}; default: all")
    parser.add_argument("--rounds", type=int, default=3, help="of the load; default 3")
    parser.add_argument("--no-load", action="store_true", help="their tests alone")
    parser.add_argument("--no-tests", action="store_true", help="the load alone")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "bench", help="where users.md goes")
    options = parser.parse_args(argv)
    if unknown := [name for name in options.names if name not in PROGRAMS]:
        parser.error(f"there is no {' '.join(unknown)}; there are: {' '.join(PROGRAMS)}")
    return options


def main(argv: list[str]) -> int:
    options = arguments(argv)
    programs = [PROGRAMS[name] for name in dict.fromkeys(options.names)] or list(PROGRAMS.values())
    rounds = 0 if options.no_load else options.rounds
    say(announcement(programs, rounds, free_gib(work_directory())))
    library = built_library(Checkout(ROOT))
    records: dict[str, Record] = {}
    failures = 0
    for program in programs:
        records[program.name] = record = opened(work_directory() / "results" / f"{program.name}.json", library.identity)
        try:
            program.build(library)
            if not options.no_tests:
                check(program, library, record)
            load(program, library, record, rounds)
        except (Failed, TerraceError) as failed:
            print(f"users, {program.name}: {failed}", file=sys.stderr, flush=True)
            failures += 1
    options.out.mkdir(parents=True, exist_ok=True)
    report = Report("users", options.out)
    bad = show(programs, records, report)
    report.close()
    return 1 if bad or failures else 0
