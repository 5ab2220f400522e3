# SPDX-License-Identifier: MIT OR Apache-2.0
"""`terrace jdk`: a JDK whose TLABs come from buffers of the cores (integrations/hotspot)."""

import argparse
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from terrace import launch
from terrace.arguments import Commands, behind_dashes
from terrace.checkout import Checkout, need_checkout
from terrace.errors import TerraceError
from terrace.jdk import agent, apps, code, fuzz, gtest, jtreg, page, programs, stress, watch
from terrace.jdk.build import announce, build_jdk
from terrace.jdk.installed import find_jdk
from terrace.jdk.session import HAB, Session, Suite
from terrace.jdk.source import read_source, work_directory
from terrace.messages import say
from terrace.prepare import prepare


def _up_to_date(checkout: Checkout, level: str) -> Path:
    announce(checkout)
    return build_jdk(checkout, level)


def build(checkout: Checkout, level: str) -> int:
    """Builds what is not there, and says where it is."""
    image = _up_to_date(checkout, level)
    say(f"jdk: {image}", always=True)
    return 0


def is_built(checkout: Checkout, level: str) -> bool:
    """Whether there is one, up to date or not."""
    return (work_directory(checkout) / f"jdk-{level}" / "terrace-complete").exists()


def run(checkout: Checkout, level: str, words: list[str]) -> int:
    """Becomes the patched `java` with the buffers on; builds it before, if there is none yet."""
    image = work_directory(checkout) / f"jdk-{level}"
    if not is_built(checkout, level):
        image = _up_to_date(checkout, level)
    java = str(image / "bin" / "java")
    try:
        os.execve(java, [java, *HAB, *words], launch.original_environment())
    except OSError as error:
        raise TerraceError(f"{java}: {error.strerror}") from None


SUITES: dict[str, Callable[[Session], Suite]] = {
    "programs": programs.run,
    "code": code.run,
    "apps": apps.run,
    "jtreg": jtreg.run,
    "tier1": jtreg.run_tier1,
    "areas": jtreg.run_areas,
    "hab": jtreg.run_of_queue,
    "gtest": gtest.run,
    "agent": agent.run,
    "watch": watch.run,
    "stress": stress.run,
    "fuzz": fuzz.run,
}
_APART = "areas"  # of many hours: not one of all
_ASSERTIONS = ("gtest", "stress")  # on a libjvm with assertions, whatever is asked for


@dataclass(frozen=True)
class Request:
    """The options of `jdk test`."""

    suite: str = "all"
    level: str = "release"
    patterns: tuple[str, ...] = ()
    image: Path | None = None  # a patched JDK instead of the one that is built
    stock: Path | None = None
    seconds: int = 600
    page: bool = True
    first: int = 0


def _session(checkout: Checkout, request: Request, level: str) -> Session:
    stock = request.stock or find_jdk(read_source(checkout))
    image = request.image or _up_to_date(checkout, level)
    return Session(checkout, stock, image, level, request.patterns, request.seconds, request.first)


def test(checkout: Checkout, request: Request) -> int:
    """Exit status 0 when each suite ran and found what the installed JDK does."""
    names = [request.suite]
    if request.suite == "all":
        names = [name for name in SUITES if name != _APART]
        say("jdk: the suites take 4 hours on 2 cpus; --suite NAME runs one", always=True)
    statuses = []
    for name in names:
        level = "fastdebug" if name in _ASSERTIONS else request.level
        session = _session(checkout, request, level)
        suite = SUITES[name](session)
        if not any(suite.results.values()):
            say(f"jdk: {name}: nothing ran", always=True)
        elif request.page and (not request.patterns or name in page.IN_PARTS):
            page.record(session, suite)
        if suite.interrupted:
            raise KeyboardInterrupt
        statuses.append(suite.status)
    return max(statuses)


def add_parser(commands: Commands) -> None:
    parser = commands.add_parser(
        "jdk",
        help="build a JDK whose TLABs come from buffers of the cores; run or test it",
        description="Patches HotSpot's source (integrations/hotspot), builds libjvm and puts it "
        "into a copy of the installed JDK of the same version. What was done is not done again.",
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    build = actions.add_parser("build", help="build it, or what has changed of it")
    build.add_argument(
        "--unpatched",
        action="store_true",
        help="one without the patches, by the same compiler, to compare with",
    )
    run = actions.add_parser(
        "run", help="run Java on it", usage="terrace jdk run [--fastdebug] -- JAVA ARGUMENTS"
    )
    test = actions.add_parser("test", help="compare its results with the installed JDK's")
    for action in (build, run, test):
        action.add_argument("--fastdebug", action="store_true", help="with HotSpot's assertions")
    test.add_argument(
        "--suite",
        choices=(*SUITES, "all"),
        default="all",
        help="programs and applications that must compute the same, HotSpot's own tests, 1,000 "
        "threads and programs from seeds for --seconds; default: all but areas, 4 hours",
    )
    test.add_argument(
        "--filter",
        action="append",
        default=[],
        metavar="TEXT",
        help="only runs whose name has it; given again, those that have one of the texts",
    )
    test.add_argument(
        "--seconds",
        type=int,
        default=600,
        help="of the stress, and of each setting of fuzz; default: 600",
    )
    test.add_argument(
        "--first", type=int, default=0, metavar="BATCH", help="of fuzz; default: 0, as each time"
    )
    test.add_argument("--image", type=Path, metavar="JDK", help="a patched JDK, not the one here")
    test.add_argument("--stock", type=Path, metavar="JDK", help="what it is compared with")
    test.add_argument("--no-page", action="store_true", help="docs/guide/jdk-tests.md stays")
    run.add_argument("command", nargs=argparse.REMAINDER, metavar="JAVA ARGUMENTS")
    parser.set_defaults(act=act)


def act(options: argparse.Namespace, checkout: Checkout | None) -> int:
    """The command."""
    checkout = need_checkout(checkout, "jdk")
    level = "fastdebug" if options.fastdebug else "release"
    if options.action == "run":
        words = behind_dashes(options.command)
        if not words:
            raise TerraceError("jdk run: usage: terrace jdk run -- JAVA ARGUMENTS", 2)
        if not is_built(checkout, level):
            prepare(checkout, ("jdk",))
        return run(checkout, level, words)
    if options.action == "build":
        prepare(checkout, ("jdk",))
        return build(checkout, "unpatched" if options.unpatched else level)
    prepare(checkout, ("jdk", "jdktest"))
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # `timeout` interrupts, too
    request = Request(
        options.suite, level, tuple(options.filter), options.image, options.stock,
        options.seconds, not options.no_page, options.first,
    )  # fmt: skip
    return test(checkout, request)
