# SPDX-License-Identifier: MIT OR Apache-2.0
"""`terrace test vm`: the tests on other kernels and machines, emulated; not part of `terrace test`.

Everything is kept under build/vm: apt's files, images, programs, consoles (console/ROW.txt) and
results (results/ROW.json). docs/guide/kernels.md is written from the results after each guest.
"""

import functools
import time
from pathlib import Path
from typing import Any

from terrace.checkout import Checkout
from terrace.messages import say
from terrace.vm import page, qemu, results
from terrace.vm.archive import Archive, newest
from terrace.vm.batches import batches
from terrace.vm.build import build_programs, commit, list_tests, objcopy
from terrace.vm.images import add_files, add_plan, join, kernel_image, root_image
from terrace.vm.results import Outcome
from terrace.vm.rows import DEBIAN_NAME, NEWEST, NEWEST_AMONG, ROWS, Row, choose
from terrace.vm.tests import BRIEF, FOLDERS, GuestTest, guest_files, rank, read_tests

# Beyond the time for tests: to boot, and for the last test to end.
_BOOT_SECONDS = 1800

# Tests side by side: many wait for others more than they work.
_WORKERS = 2

# The oracle stress while CPUs come and go, on each rung. Not the storm: emulated, its forks leave
# hardly any time for operations.
_UNPLUGGED = "stress.{}.calm"
_RUNGS = ("mm_cid", "cpu_id", "getcpu", "thread")


def unplug_tests(tests: list[GuestTest]) -> list[dict[str, Any]]:
    """The calm stress once more, under another name."""
    wanted = [_UNPLUGGED.format(rung) for rung in _RUNGS]
    return [
        {**test.as_plan(), "name": f"unplug.{test.name}", "unplug": True}
        for test in tests
        if test.name in wanted
    ]


def make_plan(
    row: Row, tests: list[GuestTest], seconds: float, library: Path | None = None
) -> dict[str, Any]:
    """What the guest is told; no test begins after `seconds`, and the last is cut off soon after.

    `library`: what is asked which rung it chooses there.
    """
    tests = [test for test in tests if not row.brief or BRIEF.match(test.name)]
    plan = batches(tests)
    if row.machine.cpus > 1:
        plan += unplug_tests(tests)
    expect = {"cpus": row.machine.cpus, "nodes": row.machine.nodes}
    if row.isa == "x86_64":  # arm64's emulated machine describes no caches
        expect["last_level_caches"] = row.machine.last_level_caches
    plan.sort(key=lambda test: rank(next(iter(test.get("parts", {}).values()), test["name"])))
    known = {"library": str(library)} if library else {}
    workers = min(row.machine.cpus, _WORKERS)
    return {"tests": plan, "expect": expect, "seconds": seconds, "workers": workers, **known}


def planned(plan: dict[str, Any]) -> int:
    """How many results there will be, with that of the machine itself."""
    return 1 + sum(len(test.get("parts", [None])) for test in plan["tests"])


class Guests:
    """What is made once and used by several guests."""

    def __init__(self, checkout: Checkout, seconds: float) -> None:
        self.seconds = seconds
        self.checkout = checkout
        self.directory = checkout.build / "vm"
        self.commit = commit(checkout)

    def archive(self, suite: str, isa: str) -> Archive:
        return Archive(self.directory / "apt", suite, DEBIAN_NAME[isa])

    @functools.cache  # noqa: B019 - as long as the command
    def newest_suite(self, isa: str) -> str:
        versions = {}
        for suite in NEWEST_AMONG:
            versions[suite] = max(self.archive(suite, isa).kernel_packages().values())
        return newest(versions)

    @functools.cache  # noqa: B019 - as long as the command
    def tests(self, isa: str) -> tuple[list[GuestTest], Path]:
        """The tests and the archive with their programs."""
        tests: list[GuestTest] = []
        files: dict[Path, Path] = {}
        for preset, build in build_programs(self.checkout, isa).items():
            listing = list_tests(self.checkout, build)
            tests += read_tests(listing, build, FOLDERS[preset])
            files |= guest_files(self.checkout.root, build, FOLDERS[preset])
        payload = self.directory / "images" / f"programs-{isa}.cpio"
        add_files(files, payload, objcopy(isa))
        return tests, payload

    def kernel(self, row: Row) -> Path:
        suite = self.newest_suite(row.isa) if row.kernel == NEWEST else row.kernel
        images = self.directory / "images"
        return kernel_image(images, self.archive(suite, row.isa))[0]

    def root(self, row: Row, plan: dict[str, Any], payload: Path) -> Path:
        images = self.directory / "images"
        base, _ = root_image(images, self.archive(row.libc, row.isa))
        planned = images / f"{row.name}.plan.cpio"
        guest = self.checkout.root / "tests" / "vm" / "guest.py"
        add_plan(plan, guest, planned)
        root = images / f"{row.name}.root.cpio"
        join([base, payload, planned], root)
        planned.unlink()
        return root

    def run(self, row: Row) -> Outcome:
        """One guest from image to outcome."""
        tests, payload = self.tests(row.isa)
        library = self.directory / f"{row.isa}-release" / "libterrace.so.0"
        plan = make_plan(row, tests, self.seconds, library)
        outcome = Outcome(
            row.name, machine=row.machine.name, commit=self.commit, planned=planned(plan)
        )
        outcome.date = time.strftime("%Y-%m-%d")
        kernel = self.kernel(row)
        root = self.root(row, plan, payload)
        console = self.directory / "console" / f"{row.name}.txt"
        console.parent.mkdir(parents=True, exist_ok=True)
        began = time.monotonic()
        words = qemu.command(row, kernel, root)
        qemu.run(words, console, self.seconds + _BOOT_SECONDS, Progress(row.name))
        results.read_console(outcome, console.read_text("utf-8", "replace"))
        outcome.seconds = round(time.monotonic() - began, 1)
        root.unlink()
        return outcome


class Progress:
    """Says of each test that did not pass that it did not, when it did not."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.rest = ""

    def __call__(self, piece: str) -> None:
        *lines, self.rest = (self.rest + piece).split("\n")
        for line in lines:
            report = results.read_line(line)
            if report and report.get("kind") == "result" and report["result"] == "failed":
                say(f"{self.name}: {report['test']}: {report['reason']}")


def write_page(checkout: Checkout) -> Path:
    """From all results there are, also those of earlier runs; what the page tells of others stays."""
    outcomes = results.load(checkout.build / "vm" / "results")
    path = checkout.root / "docs" / "guide" / "kernels.md"
    earlier = path.read_text("utf-8") if path.exists() else ""
    path.write_text(page.page(ROWS, outcomes, earlier), "utf-8")
    return path


def run_guests(checkout: Checkout, pattern: str | None, seconds: float) -> int:
    """Exit status 0 when each guest that was asked for ran to its end without a failure."""
    guests = Guests(checkout, seconds)
    verdicts = []
    counts = dict.fromkeys(("passed", "failed", "skipped"), 0)
    rows = choose(pattern)
    for isa in dict.fromkeys(row.isa for row in rows):
        guests.tests(isa)  # all guests have the same state of the sources
    for row in rows:
        print(f"\n== {row.name}", flush=True)
        outcome = guests.run(row)
        results.save(outcome, checkout.build / "vm" / "results")
        write_page(checkout)
        for name, reason in outcome.reasons.items():
            if outcome.results[name] == "failed":
                print(f"FAILED {row.name}: {name}: {reason}")
        for line in outcome.complaints:
            print(f"kernel of {row.name}: {line}")
        numbers = {result: outcome.count(result) for result in counts}
        text = ", ".join(f"{number} {result}" for result, number in numbers.items())
        print(f"{outcome.verdict}: {text} ({outcome.kernel}, {outcome.libc}; {outcome.seconds} s)")
        verdicts.append(outcome.verdict)
        counts = {result: counts[result] + numbers[result] for result in counts}
    total = ", ".join(f"{number} {result}" for result, number in counts.items())
    print(f"{len(verdicts)} guests; {total}", flush=True)
    return 0 if all(verdict == "passed" for verdict in verdicts) else 1
