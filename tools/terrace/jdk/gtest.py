# SPDX-License-Identifier: MIT OR Apache-2.0
"""`terrace jdk test --suite gtest`: HotSpot's unit tests, in a libjvm with assertions.

The installed JDK's libjvm has no unit tests in it, so that `stock` is the patched library with
all flags off.
"""

import json
import subprocess
import time
from pathlib import Path
from typing import Any

from terrace.captured import run_captured
from terrace.errors import TerraceError
from terrace.jdk.session import (
    FAILED,
    FIVE,
    NOT_RUN,
    PASSED,
    STOCK,
    Session,
    Suite,
    java_environment,
    usable,
)
from terrace.jdk.source import work_directory

_LONGEST = 3600


def parse_report(text: str) -> dict[str, str]:
    """Suite.test -> result, of googletest's JSON; left out or skipped is not run."""
    report: dict[str, Any] = json.loads(text)
    results = {}
    for suite in report["testsuites"]:
        for test in suite["testsuite"]:
            ran = test.get("status") == "RUN" and test.get("result") != "SKIPPED"
            result = FAILED if test.get("failures") else PASSED if ran else NOT_RUN
            results[f"{suite['name']}.{test['name']}"] = result
    return results


def launcher(session: Session) -> Path:
    """The program that `jdk build --fastdebug` makes beside libjvm."""
    build = work_directory(session.checkout) / f"build-{session.level}"
    program = build / "hotspot/variant-server/libjvm/gtest/gtestLauncher"
    if not program.exists():
        raise TerraceError(f"{program} is not there: ./terrace jdk build --fastdebug makes it")
    return program


def _execute(command: list[str], log: Path) -> str:
    """How it ended; what it printed is in the log."""
    with log.open("w", encoding="utf-8") as output:
        try:
            done = run_captured(
                command, java_environment(), timeout=_LONGEST, cwd=log.parent, log=output
            )
        except subprocess.TimeoutExpired:
            return f"not done after {_LONGEST} s"
    return f"exit status {done.returncode}"


def _run(session: Session, flags: tuple[str, ...]) -> dict[str, str]:
    directory = session.directory / "gtest"
    directory.mkdir(parents=True, exist_ok=True)
    report = directory / "report.json"
    report.unlink(missing_ok=True)
    wanted = ":".join(f"*{pattern}*" for pattern in session.patterns)
    chosen = [f"--gtest_filter={wanted}"] if wanted else []
    command = [
        *(str(launcher(session)), f"-jdk:{session.image}", *chosen, *flags),
        f"--gtest_output=json:{report}",
    ]
    log = directory / "log"
    ended = _execute(command, log)
    if not report.exists():
        tail = log.read_text(errors="replace")[-2000:]
        raise TerraceError(f"{ended}, no report: {' '.join(command)}\n{tail}")
    return parse_report(report.read_text(encoding="utf-8"))


def run(session: Session) -> Suite:
    """All flags off, then each of the five settings."""
    suite = Suite("gtest", session.level)
    settings = usable(FIVE, session.image, suite)
    began = time.monotonic()
    suite.results[STOCK] = _run(session, ())
    suite.print_setting(STOCK)
    for setting in settings:
        try:
            suite.results[setting.name] = _run(session, (*setting.stock, *setting.patched))
        except TerraceError as error:
            print(error, flush=True)
            suite.put(setting.name, "all", FAILED)
        suite.print_setting(setting.name)
    suite.seconds = time.monotonic() - began
    for setting_name, test, expected, result in suite.differences():
        print(f"FAILED  {setting_name}: {test}: {result}, without the buffers {expected}")
    suite.print_counts()
    return suite
