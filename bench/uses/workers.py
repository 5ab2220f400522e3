# SPDX-License-Identifier: MIT OR Apache-2.0
"""Programs that work by themselves and then wait: a JVM's native memory, Python's workers, a thousand threads.

Each writes the file `loaded` into its folder when its work is done: the number of its tasks, and the milliseconds within which 99 of
100 were done. It ends well on SIGTERM.
"""

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from interleave import Subject
from recipe import find, with_more
from report import ROOT
from server import Service
from use import PROGRAMS, Done, Use, number
from workload import Failed, ran

BUILT = ROOT / "build" / "uses"
LOAD_SECONDS = 300.0


def _service(command: Sequence[str], folder: Path) -> Service:
    """It waits for the file `share`, to be looked at from its first moment on."""
    return Service(command, folder, lambda: (folder / "ready").exists())


def _load(tasks: int, folder: Path, share: float) -> Done:
    count = max(8, round(tasks * share))
    (folder / "tasks.new").write_text(str(count))
    (folder / "tasks.new").rename(folder / "tasks")
    deadline = time.monotonic() + LOAD_SECONDS
    while not (folder / "loaded").exists():
        if time.monotonic() > deadline:
            raise Failed(f"it has not done {count} tasks in {LOAD_SECONDS:.0f} s")
        time.sleep(0.1)
    said = (folder / "loaded").read_text()
    if number(r"^(\d+) ", said) != count:
        words = (folder / "log").read_text(errors="replace").strip()[:300]
        raise Failed(f"it says that it has done {said} of {count} tasks: {words}")
    return Done(count, number(r" (.+)", said))


def _compiled(_folder: Path, command: Sequence[str]) -> None:
    BUILT.mkdir(parents=True, exist_ok=True)
    ran(command)


def _use(name: str, title: str, needs: tuple[str, ...], command: Sequence[str], tasks: int, compiler: Sequence[str] = (),
         subject: Callable[[Subject], Subject] = lambda one: one, settings: dict[str, dict[str, str]] | None = None) -> Use:
    prepare = partial(_compiled, command=compiler) if compiler else lambda _folder: None
    return Use(name, title, needs, partial(_service, command), partial(_load, tasks), prepare, subject, settings or {})


def _python(subject: Subject) -> Subject:
    return with_more(subject, {"PYTHONMALLOC": "malloc"})


_WORKERS = ("python3",)
_RUN_WORKERS = [find("python3") or "python3", str(PROGRAMS / "workers.py")]

# Before Java 22 an allocation fails when inflaters on other threads have put off the collection a second time.
_PATIENT = ["-XX:+IgnoreUnrecognizedVMOptions", "-XX:+UnlockDiagnosticVMOptions", "-XX:GCLockerRetryAllocationCount=1000"]

USES = (
    _use("jvm-native", "JVM: inflaters and direct buffers", ("java", "javac"),
         ["java", *_PATIENT, "-Xmx256m", "-XX:MaxDirectMemorySize=2g", "-cp", str(BUILT), "Native"], 1600,
         ["javac", "-d", str(BUILT), str(PROGRAMS / "Native.java")],
         settings={"trimmed by the JVM": {"JAVA_TOOL_OPTIONS": "-XX:TrimNativeHeapInterval=1000"}}),
    _use("python-workers", "Python: 4 workers", _WORKERS, _RUN_WORKERS, 60),
    _use("python-malloc", "Python: 4 workers, PYTHONMALLOC=malloc", _WORKERS, _RUN_WORKERS, 60, subject=_python),
    _use("threads", "C++: a pool of 1,000 threads", ("g++",), [str(BUILT / "threads")], 150_000,
         ["g++", "-O2", "-std=c++17", "-pthread", "-o", str(BUILT / "threads"), str(PROGRAMS / "threads.cpp")]),
)
