# SPDX-License-Identifier: MIT OR Apache-2.0
"""`terrace jdk`: a JDK whose TLABs come from buffers of the cores (integrations/hotspot)."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from terrace import (
    jdk_agent,
    jdk_apps,
    jdk_build,
    jdk_fuzz,
    jdk_gtest,
    jdk_jtreg,
    jdk_page,
    jdk_stress,
    jdk_test,
    jdk_watch,
    launch,
)
from terrace.checkout import Checkout
from terrace.errors import TerraceError
from terrace.jdk_session import HAB, Session, Suite
from terrace.jdk_source import read_source, work_directory
from terrace.messages import say


def _up_to_date(checkout: Checkout, level: str) -> Path:
    jdk_build.announce(checkout)
    return jdk_build.build_jdk(checkout, level)


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
    "programs": jdk_test.run,
    "apps": jdk_apps.run,
    "jtreg": jdk_jtreg.run,
    "tier1": jdk_jtreg.run_tier1,
    "areas": jdk_jtreg.run_areas,
    "hab": jdk_jtreg.run_of_queue,
    "gtest": jdk_gtest.run,
    "agent": jdk_agent.run,
    "watch": jdk_watch.run,
    "stress": jdk_stress.run,
    "fuzz": jdk_fuzz.run,
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
    stock = request.stock or jdk_build.find_jdk(read_source(checkout))
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
        if request.page and (not request.patterns or name in jdk_page.IN_PARTS):
            jdk_page.record(session, suite)
        statuses.append(suite.status)
    return max(statuses)
