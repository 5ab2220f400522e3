# SPDX-License-Identifier: MIT OR Apache-2.0
"""From the words of `terrace profile` to a profile and where it goes."""

import argparse
import os
from pathlib import Path

from terrace import launch, messages
from terrace.checkout import Checkout
from terrace.debug import damage
from terrace.debug.live import LiveTarget
from terrace.debug.reports import open_target
from terrace.debug.sampled.stacks import Reader
from terrace.errors import TerraceError
from terrace.library import find_library
from terrace.profile import output, program, switch
from terrace.profile.collect import profile_of
from terrace.profile.model import Profile
from terrace.profile.watch import Watch, wait

_ELF_CORE = (4).to_bytes(2, "little")


def _opened(pid: int) -> Reader:
    return Reader(LiveTarget(pid))


def _is_target(words: list[str]) -> bool:
    """A process or a core file, rather than a program to start."""
    path = Path(words[0])
    if len(words) > 1 or not path.is_file():
        return len(words) == 1 and words[0].isdecimal()
    if not os.access(path, os.X_OK):
        return True
    with path.open("rb") as file:
        return file.read(18)[16:] == _ELF_CORE


def of_target(name: str, options: argparse.Namespace) -> Profile:
    """Of a process that runs, or a core file."""
    target = open_target(name, samples_alone=True)
    if options.seconds is not None and not isinstance(target, LiveTarget):
        raise TerraceError("--seconds: a core file does not change", 2)
    if options.allocated and options.seconds is None:
        raise TerraceError(
            "--allocated: of what was freed nothing is kept: say by --seconds N how long to look", 2
        )
    with damage.expected("profile"):
        reader = Reader(target)
        reader.expect_samples()
        if options.seconds is None or not isinstance(target, LiveTarget):
            return profile_of(reader, reader.samples(), options.peak)
        watch = Watch(lambda: Reader(target), reader)
        wait(options.seconds, target.pid)
        there, allocated = watch.stop(reader)
        profile = profile_of(reader, there, options.peak, allocated if options.allocated else None)
        profile.duration = int(options.seconds * 1e9)
        profile.show_allocated = options.allocated
        profile.title += f", what it allocated in {options.seconds:g} s"
        return profile


def _setting(options: argparse.Namespace) -> str | None:
    """Of TERRACE_PROFILE; None: nothing was said."""
    if options.period is None and not options.frames:
        return None
    return f"{switch.bytes_of(options.period)}{',frames' if options.frames else ''}"


class _OfProgram:
    """What is known of a program as it exits."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._watch: Watch | None = None
        self.profile: Profile | None = None
        self.error = TerraceError("the program has ended before it could be looked at")

    def started(self, pid: int) -> None:
        if self._options.allocated and self._watch is None:
            self._watch = Watch(lambda: _opened(pid))

    def exiting(self, pid: int) -> None:
        try:
            with damage.expected("profile"):
                self.profile = self._read(pid)
        except TerraceError as error:  # the program has to end, whatever becomes of the report
            self.error = error

    def _read(self, pid: int) -> Profile:
        reader = _opened(pid)
        reader.expect_samples()
        if self._watch is None:
            return profile_of(reader, reader.samples(), self._options.peak)
        there, allocated = self._watch.stop(reader)
        profile = profile_of(reader, there, self._options.peak, allocated)
        profile.show_allocated = True
        return profile


def run_program(words: list[str], options: argparse.Namespace, checkout: Checkout | None) -> int:
    """The exit status is the program's."""
    if options.seconds is not None:
        raise TerraceError("--seconds is for a process that runs already", 2)
    found = _OfProgram(options)
    tracer = program.Tracer(found.started, found.exiting)
    ending = program.run(words, str(find_library(checkout)), _setting(options), tracer)
    if found.profile is None:
        messages.say(f"no profile: {found.error}", always=True)
    else:
        if not options.peak:
            found.profile.title += ", at its exit"
        if not (found.profile.stacks or options.peak or options.allocated):
            found.profile.notes.append("--peak shows what it held most, --allocated all it took")
        output.write(found.profile, options.chosen_format, options.output)
    return launch.end_like(ending)


def _draw(options: argparse.Namespace) -> int:
    """The page of --watch."""
    from terrace.profile.timeline import seconds_of, watch
    from terrace.profile.timeline_page import page

    every, during = seconds_of("--every", options.every), seconds_of("--for", options.during)
    if options.output is None or not options.output.endswith(".html"):
        raise TerraceError("--watch: name the page, by -o PAGE.html", 2)
    output.expect_writable(options.output)
    text = page(watch(options.watch, every, during))
    Path(options.output).write_text(text, encoding="utf-8")
    messages.say(f"a page of process {options.watch}: {options.output}")
    return 0


def run(options: argparse.Namespace, checkout: Checkout | None) -> int:
    """The exit status."""
    if options.watch is not None:
        return _draw(options)
    output.expect_writable(options.output)
    if options.start is not None:
        return switch.start(options.start, switch.bytes_of(options.period), options.frames)
    if options.diff is not None:
        from terrace.profile.pprof import load

        before, after = map(load, options.diff)
        output.write(after, options.chosen_format, options.output, before)
    elif not options.words:
        raise TerraceError("profile: name a process, a core file, or -- PROGRAM", 2)
    elif _is_target(options.words):
        profile = of_target(options.words[0], options)
        output.write(profile, options.chosen_format, options.output)
    else:
        return run_program(options.words, options, checkout)
    return 0
