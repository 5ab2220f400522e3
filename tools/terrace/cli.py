# SPDX-License-Identifier: MIT OR Apache-2.0
"""What each subcommand does. Its modules are imported when it is called: `run` must start fast."""

from __future__ import annotations

import argparse
import importlib.util
import sys
from pathlib import Path

from terrace import messages
from terrace.checkout import Checkout, chosen_library, find_checkout
from terrace.command_line import DEBUGGER, parse
from terrace.errors import TerraceError


def find_library(checkout: Checkout | None) -> Path:
    """$TERRACE_LIBRARY, else the checkout's (built if need be), else the installed one."""
    chosen = chosen_library()
    if chosen:
        return chosen  # there is nothing to build, and rich only makes the table prettier
    if checkout is None:
        from terrace.library import installed_library

        return installed_library()
    from terrace import venv
    from terrace.build import build_library, is_up_to_date
    from terrace.prepare import prepare, went_without

    # Any Python that has rich will do, but the checkout's own one is kept up to its requirements.
    if venv.is_running_in(checkout):
        ready = venv.has_extra(checkout, "run")
    else:
        ready = importlib.util.find_spec("rich") is not None
    if (ready or went_without(checkout)) and is_up_to_date(checkout):
        return checkout.library
    prepare(checkout)
    return build_library(checkout)


def _need_checkout(checkout: Checkout | None, subcommand: str) -> Checkout:
    if checkout is None:
        raise TerraceError(
            f"`{subcommand}` needs a checkout of the sources: run ./terrace {subcommand} there"
        )
    return checkout


def _run(options: argparse.Namespace, checkout: Checkout | None) -> int:
    from terrace.run import RunOptions, run_program

    wanted = options.command[1:] if options.command[:1] == ["--"] else options.command
    if not wanted:
        raise TerraceError(
            "run: no program given; usage: terrace run [OPTIONS] -- PROGRAM [ARGUMENT ...]", 2
        )
    messages.quiet = options.quiet
    library = find_library(checkout)
    return run_program(str(library), RunOptions(wanted, options.stats, options.json, options.quiet))


def _doctor(options: argparse.Namespace, checkout: Checkout | None) -> int:
    library = find_library(checkout)
    from terrace.doctor import doctor

    return doctor(library, as_json=options.json)


def _test(options: argparse.Namespace, checkout: Checkout | None) -> int:
    from terrace.prepare import prepare
    from terrace.testing import PRESETS, QUICK_PRESETS, run_tests

    checkout = _need_checkout(checkout, "test")
    if options.where == "vm":
        return _test_vm(options, checkout)
    unknown = sorted(set(options.preset or ()) - set(PRESETS))
    if unknown:
        raise TerraceError(
            f"there is no preset {' '.join(unknown)}; there are: {' '.join(PRESETS)}", 2
        )
    if options.changed:
        if options.preset or options.quick or options.all or options.filter:
            raise TerraceError("test: --changed chooses presets and tests by itself", 2)
        from terrace.changed import run_changed

        prepare(checkout, ("changed",), ("test", "debug", "docs"))
        return run_changed(checkout)
    prepare(checkout, ("test",), ("test", "debug", "docs"))
    presets = tuple(options.preset or (QUICK_PRESETS if options.quick else PRESETS))
    return run_tests(checkout, presets, options.filter, options.all)


def _test_vm(options: argparse.Namespace, checkout: Checkout) -> int:
    from terrace.prepare import prepare
    from terrace.vm import command as vm
    from terrace.vm.rows import choose

    if options.preset or options.quick or options.all or options.changed:
        raise TerraceError(
            "test vm: --preset, --quick, --all and --changed are for tests on this machine", 2
        )
    choose(options.filter)
    prepare(checkout, ("vm",))
    return vm.run_guests(checkout, options.filter, 60 * options.minutes)


def _bench(options: argparse.Namespace, checkout: Checkout | None) -> int:
    from terrace import bench
    from terrace.prepare import prepare

    checkout = _need_checkout(checkout, "bench")
    if options.name is None:
        return bench.list_drivers(checkout)
    driver = bench.find_driver(checkout, options.name)  # before anything is installed for it
    prepare(checkout, bench.purposes(driver), ("bench",))
    return bench.run_driver(checkout, options.name, options.arguments)


def _record(options: argparse.Namespace, checkout: Checkout | None) -> int:
    from terrace import record
    from terrace.prepare import prepare

    command: list[str] = options.command
    runs = command[:1] == ["--"] or not options.summary
    wanted = command[1:] if command[:1] == ["--"] else command
    if not wanted or (not runs and len(wanted) > 1):
        raise TerraceError(
            "record: usage: terrace record [-o FILE] [--summary] -- PROGRAM [ARGUMENT ...], "
            "or terrace record --summary FILE",
            2,
        )
    checkout = _need_checkout(checkout, "record")
    if options.summary and importlib.util.find_spec("rich") is None:
        prepare(checkout)
    programs = record.find_programs(checkout)
    if not runs:
        return record.summarise(programs, wanted[0])
    return record.record_program(
        programs, record.RecordOptions(wanted, options.output, options.summary)
    )


def _fuzz(options: argparse.Namespace, checkout: Checkout | None) -> int:
    from terrace import fuzz
    from terrace.prepare import prepare

    checkout = _need_checkout(checkout, "fuzz")
    if options.name is None:
        print("\n".join(fuzz.names(checkout)))
        return 0
    prepare(checkout, ("test", "fuzz"))
    return fuzz.fuzz(checkout, options.name, options.seconds)


def _docs(options: argparse.Namespace, checkout: Checkout | None) -> int:
    from terrace import docs
    from terrace.prepare import prepare

    checkout = _need_checkout(checkout, "docs")
    prepare(checkout, (), ("docs",), ("python",))  # nothing is compiled
    return docs.serve(checkout, options.port) if options.serve else docs.build(checkout)


def _jdk(options: argparse.Namespace, checkout: Checkout | None) -> int:
    from terrace.jdk import command as jdk
    from terrace.prepare import prepare

    checkout = _need_checkout(checkout, "jdk")
    level = "fastdebug" if options.fastdebug else "release"
    if options.action == "run":
        words: list[str] = options.command[1:] if options.command[:1] == ["--"] else options.command
        if not words:
            raise TerraceError("jdk run: usage: terrace jdk run -- JAVA ARGUMENTS", 2)
        if not jdk.is_built(checkout, level):
            prepare(checkout, ("jdk",))
        return jdk.run(checkout, level, words)
    if options.action == "build":
        prepare(checkout, ("jdk",))
        return jdk.build(checkout, "unpatched" if options.unpatched else level)
    prepare(checkout, ("jdk", "jdktest"))
    request = jdk.Request(
        options.suite,
        level,
        tuple(options.filter),
        options.image,
        options.stock,
        options.seconds,
        not options.no_page,
        options.first,
    )
    return jdk.test(checkout, request)


def _debug(options: argparse.Namespace, checkout: Checkout | None) -> int:
    from terrace.prepare import prepare

    wanted = ("numpy", "scipy", "elftools", "rich")
    if checkout is not None:
        if not all(importlib.util.find_spec(name) for name in wanted):
            prepare(checkout, (), ("debug",), ("python",))  # nothing is built
    elif missing := [name for name in wanted if not importlib.util.find_spec(name)]:
        raise TerraceError(
            f"{options.subcommand} needs {', '.join(missing)}: pip install 'terrace[debug]'"
        )
    from terrace.debug.commands import run

    return run(options)


def main(arguments: list[str] | None = None) -> int:
    """Returns the exit status; what a person can mend is one line on stderr, no traceback."""
    options = parse(arguments)
    subcommand = {
        "run": _run,
        "doctor": _doctor,
        "test": _test,
        "record": _record,
        "bench": _bench,
        "fuzz": _fuzz,
        "docs": _docs,
        "jdk": _jdk,
        **dict.fromkeys(DEBUGGER, _debug),
    }[options.subcommand]
    try:
        return subcommand(options, find_checkout())
    except TerraceError as error:
        messages.say(str(error), always=True)
        return error.status
    except KeyboardInterrupt:
        return 130
    finally:
        if sys.stdout is not None:
            sys.stdout.flush()
