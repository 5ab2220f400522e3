# SPDX-License-Identifier: MIT OR Apache-2.0
"""The patched JVM against the stock one: both papers' experiments on HotSpot, what the buffers gain, and what they cost.

terrace bench jdk [EXPERIMENT...] [options]     experiments: javac orders chat allocation bursts reserve overall; default: all, an hour on 2 cores
--stock DIR, --patched DIR: other JDKs than the installed one and that of `terrace jdk build`
--quick: four minutes, to see whether it works; --full: all sizes that the papers have, two hours
--stored: nothing is measured, the report is made from the raw numbers of an earlier run
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import allocation
import bursts
import chat
import javac
import material
import orders
import overall
import reserve
from cells import Experiment, Site, measure
from interleave import measured
from jvms import PATCHED, STOCK, errors, patched_home, probe, stock_home
from report import Report, arguments

EXPERIMENTS = {e.name: e for e in (m.EXPERIMENT for m in (overall, reserve, bursts, allocation, chat, orders, javac))}
SKIPPED = 77


def parse(argv: Sequence[str]) -> tuple[list[str], argparse.Namespace]:
    """The experiments, and the options: those of every driver, and ours."""
    ours = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    for flag in ("--stored", "--quick", "--full"):
        ours.add_argument(flag, action="store_true")
    for flag in ("--stock", "--patched"):
        ours.add_argument(flag, type=Path)
    found, rest = ours.parse_known_args(argv)
    chosen = [a for a in rest if a in EXPERIMENTS]
    smoke = ["--smoke"] if found.quick and "--smoke" not in rest else []
    options = arguments(__doc__, [a for a in rest if a not in EXPERIMENTS] + smoke, rounds=3)
    for key, value in vars(found).items():
        setattr(options, key, value)
    return chosen or list(EXPERIMENTS), options


def needs_programs(argv: Sequence[str]) -> bool:
    return "--stored" not in argv


def _site(options: argparse.Namespace) -> Site:
    jvms = {STOCK: probe(stock_home(options.stock)), PATCHED: probe(patched_home(options.patched))}
    return Site(options, jvms, material.prepare(jvms[STOCK].home))


def _run(chosen: Sequence[Experiment], options: argparse.Namespace, site: Site | None) -> None:
    page = Report("jdk", options.out, "HotSpot on buffers of the cores: the patched JVM against the stock one", checks_first=True)
    if site is not None:
        page.say(f"Stock: {site.jvms[STOCK].version}. Patched: {site.jvms[PATCHED].version}.")
    if options.smoke:
        page.say("A quick run: it tells whether everything works; its windows are too short for its figures to mean anything.")
    left = sum(e.minutes(options) for e in chosen)
    for i, experiment in enumerate(chosen):
        if site is not None:
            minutes = f"about {experiment.minutes(options):.0f} min; {left:.0f} min left in all"
            print(f"{experiment.name} ({i + 1} of {len(chosen)}): {minutes}", flush=True)
        results = measured(options, f"jdk-{experiment.name}", lambda e=experiment: measure(site, e, page))  # type: ignore[misc, arg-type]
        left -= experiment.minutes(options)
        experiment.report(options, page, results)
    page.close()


def main(argv: Sequence[str]) -> int:
    chosen, options = parse(argv)
    experiments = [EXPERIMENTS[name] for name in chosen]
    if options.stored:
        _run(experiments, options, None)
        return 0
    try:
        site = _site(options)
    except (errors.TerraceError, material.NotRun) as reason:
        print(f"skipped: {reason}", file=sys.stderr)
        return SKIPPED
    _run(experiments, options, site)
    return 0
