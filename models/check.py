#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs the Spin models: the right protocols must pass an exhaustive search, every mutant must not.

    models/check.py                  everything, as a table
    models/check.py NO_RECHECK ...   these rows
    models/check.py --if-changed ... in full only what is not as recorded in verified.txt; a bounded search for the rest
    models/check.py --record ...     in full, and what is as expected becomes the record
    models/check.py --list           the rows; --names: nothing but their names
    models/check.py --trace NAME     a short way to a mutant's error, step by step

Exit status: 0 as expected, 1 not, 77 Spin is not installed. Needs Spin and a C compiler.
"""
import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import record

HERE = Path(__file__).resolve().parent
SKIPPED = 77
SECONDS = 900  # for one search; the longest takes about one minute
MEBIBYTES = 1900  # for one search
BOUND = 20  # a bounded search marks visited states in 2^BOUND bits: it looks at some 600,000 of them
LIST_WIDTH = 22


@dataclass(frozen=True)
class Row:
    name: str
    model: str
    about: str
    flags: tuple = ()
    right: bool = False  # must pass; the others must fail
    live: bool = False  # searched for cycles under weak fairness, not for safety
    whole: bool = False  # must also reach every statement
    collapse: bool = False  # compressed states: slower, for the large ones
    depth: int = 100_000
    long: bool = False  # a mutant whose search takes longer than the compiler
    backwards: bool = False  # the last option of a choice first, where a mutant's error is nearer that way


def right(name, model, about, *flags, **more):
    return Row(name, model, about, flags, right=True, **more)


def mutant(name, model, about, *flags, **more):
    return Row(name, model, about, (name, *flags), **more)


STOP, REFILL, LAB = "stop_slot", "refill", "lab_refill"
ROWS = (
    right("stop_returns", STOP, "a stop returns, whatever the owners do", "LIVENESS", live=True),
    right("two_rounds", STOP, "stopped and started twice", "ROUNDS=2", collapse=True),
    right("three_sequences", STOP, "each thread does three", "OPS=3", "KINDS=1", collapse=True),
    right("mm_cid", STOP, "slots move with the threads and between CPUs", whole=True, collapse=True),
    right("filled_magazines", STOP, "a thread puts a magazine that it has pushed onto", "FILL", "OPS=3", "KINDS=1", collapse=True),
    right("cpu_id", STOP, "the slot is the CPU", "SLOT_IS_CPU"),
    right("three_threads", STOP, "three threads on two CPUs", "THREADS=3", "OPS=1"),
    # Faults of the thread that stops.
    mutant("NO_MEMBARRIER", STOP, "no barrier between stopping and looking again"),
    mutant("BARRIER_FIRST", STOP, "the barrier comes before the words are stopped"),
    mutant("PLAIN_BARRIER", STOP, "a barrier that drains stores but aborts nobody"),
    mutant("NO_DRAIN", STOP, "a barrier that aborts but drains no store"),
    mutant("NO_RECHECK", STOP, "no second look after the barrier"),
    mutant("EARLY_READ", STOP, "rounds are read between stopping and the barrier"),
    mutant("STOP_BY_STORE", STOP, "load and store instead of compare-and-swap"),
    mutant("KEEP_FIRST_HELD", STOP, "a retry keeps what the first attempt found"),
    mutant("UNDO_BY_STORE", STOP, "after a failed barrier, words are put back by a store"),
    # Faults of the owners' sequences.
    mutant("WRONG_LENGTH", STOP, "the sequence ends, for the kernel, before its commit"),
    mutant("TWO_STORES", STOP, "magazine and count are committed by two stores"),
    mutant("LATE_ROUND", STOP, "a push writes the round after its commit"),
    mutant("SLOT_REREAD", STOP, "the slot is read again for the commit"),
    mutant("SLOT_KEPT", STOP, "the slot is not read again after an abort"),
    mutant("NO_STOPPED_CHECK", STOP, "a stopped word is taken for an empty one"),
    # What the protocol needs from the kernel.
    mutant("LOST_ABORT", STOP, "preemption does not abort"),
    mutant("NO_SWITCH_BARRIER", STOP, "a context switch does not drain stores"),
    mutant("SHARED_SLOT", STOP, "two running threads have the same slot"),
    mutant("ENDLESS_OWNERS", STOP, "owners that never pause can delay a stop for ever", "LIVENESS",
           live=True, long=True),
    right("refill", REFILL, "refill, spill, depot, drain", whole=True, depth=4_000_000),
    right("larger_depot", REFILL, "a depot with room for two magazines", "ROOM=2",
          depth=4_000_000),
    mutant("LOST_MAGAZINE", REFILL, "refill ignores that the word was occupied",
           depth=4_000_000),
    mutant("LOST_SPILL", REFILL, "spill ignores that the depot is full", depth=4_000_000),
    mutant("LOST_PREVIOUS", REFILL, "spill forgets the former previous magazine when the new one found no place",
           depth=4_000_000),
    mutant("TAKE_LEAVES", REFILL, "take_all reads the word and leaves it", depth=4_000_000),
    mutant("NO_OCCUPIED_CHECK", REFILL, "put_all overwrites", depth=4_000_000),
    mutant("DEPOT_NO_LOCK", REFILL, "the depot without its lock", depth=4_000_000),
    mutant("DEPOT_NO_SECOND_LOOK", REFILL, "the depot's count is not looked at under the lock",
           depth=4_000_000),
    mutant("LOCK_KEPT", REFILL, "a path that keeps the depot's lock", depth=4_000_000),
    right("lab_cas", LAB, "two buffers by compare-and-swap", whole=True),
    right("lab_sections", LAB, "two buffers by critical sections", "RESTARTABLE", whole=True),
    right("lab_ascending", LAB, "more space, handed out from one end", "RESTARTABLE", "ASCENDING",
          "UNITS=5"),
    right("lab_two_places", LAB, "small LABs, two may be sidelined", "RESTARTABLE", "ASCENDING",
          "LAB=2", "PLACES=2"),
    right("lab_three_threads", LAB, "three threads on one slot", "RESTARTABLE", "ASCENDING",
          "THREADS=3", "BUFFERS=1", "UNITS=2", "LAB=2", depth=1_000_000),
    right("lab_drain", LAB, "a buffer is drained meanwhile", "RESTARTABLE", "DRAIN", "ASCENDING", "BUFFERS=1", "UNITS=3", "LAB=2",
          depth=1_000_000),
    right("lab_drain_one_thread", LAB, "two buffers are drained, one thread", "RESTARTABLE", "DRAIN", "THREADS=1", whole=True),
    # Faults of the compare-and-swap level.
    mutant("PLAIN_TAKE", LAB, "a taker moves top without comparing"),
    mutant("NO_SENTINEL", LAB, "a refill does not close the buffer and stores the new top"),
    mutant("NOT_RESTORED", LAB, "a refill that has got nothing leaves the buffer closed"),
    mutant("CAS_END_FIRST", LAB, "a taker reads end before top", "END_FIRST", backwards=True),
    mutant("CAS_END_AFTER_TOP", LAB, "the buffer is opened before its end is stored",
           "END_AFTER_TOP", backwards=True),
    mutant("CAS_OLD_TAIL_LOST", LAB, "a refill forgets what was left", "OLD_TAIL_LOST"),
    # Faults of the level with critical sections.
    mutant("END_FIRST", LAB, "a bump sequence reads end before top", "RESTARTABLE", backwards=True),
    mutant("END_AFTER_TOP", LAB, "the buffer is opened before its end is stored", "RESTARTABLE", backwards=True),
    mutant("OLD_TAIL_LOST", LAB, "a refill forgets what was left", "RESTARTABLE", backwards=True),
    mutant("BOUNDS_NOT_COMPARED", LAB, "reopened over another top and end", "RESTARTABLE", backwards=True),
    mutant("SLOT_NOT_COMPARED", LAB, "reopened on another slot", "RESTARTABLE"),
    mutant("SECTION_TRUSTED", LAB, "a section that reads as valid after a call is not reopened",
           "RESTARTABLE"),
    mutant("PLAIN_CLOSE", LAB, "closed by a plain store", "RESTARTABLE"),
    mutant("LAB_DROPPED", LAB, "a LAB is forgotten instead of sidelined", "RESTARTABLE"),
    mutant("SIDELINED_AND_USED", LAB, "a sidelined LAB is installed all the same", "RESTARTABLE"),
    mutant("SIDELINED_NO_LOCK", LAB, "the sidelined without their lock", "RESTARTABLE"),
    mutant("DRAIN_NO_BARRIER", LAB, "drained without a barrier", "RESTARTABLE", "DRAIN", "ASCENDING", long=True),
    mutant("DRAIN_NO_SECOND_LOOK", LAB, "what was committed before the barrier is not looked at", "RESTARTABLE", "DRAIN",
           "ASCENDING", long=True),
    mutant("DRAIN_ONE_SENTINEL", LAB, "drained under the same value as refilled", "RESTARTABLE", "DRAIN", "ASCENDING",
           "BUFFERS=1", "UNITS=3", "LAB=2", long=True),
)


class Broken(Exception):
    """The tools did not do what they should: neither a pass nor a failure of the model."""


def run(command, directory):
    try:
        done = subprocess.run(command, cwd=directory, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired as late:
        raise Broken(f"{command[0]}: not done after {SECONDS} s") from late
    return done.returncode, done.stdout


def build(row, directory, compile_flags):
    model = HERE / f"{row.model}.pml"
    status, text = run(["spin", "-a", *(f"-D{flag}" for flag in row.flags), str(model)], directory)
    if status != 0 or not (Path(directory) / "pan.c").exists():
        raise Broken(f"spin: {text.strip()}")
    if row.right:
        way = ["-O1"] if "-DBITSTATE" in compile_flags else ["-O2"]
    else:
        way = ["-O1" if row.long else "-O0"]  # most of a mutant's time is the compiler's
        way += ["-DT_REVERSE"] if row.backwards else []
    status, text = run(["cc", *way, "-w", f"-DMEMLIM={MEBIBYTES}", *compile_flags, "-o", "pan",
                        "pan.c"], directory)
    if status != 0:
        raise Broken(f"cc: {text.strip()}")


def number(pattern, text):
    found = re.search(pattern, text)
    if found is None:
        raise Broken(f"no '{pattern}' in what the search printed:\n{text}")
    return float(found.group(1))


def unreached(text):
    """Statements that the search never came to; the end of an endless process is none."""
    return [line.strip() for line in re.findall(r"^\t(\S+\.pml:\d+, state .*)$", text, re.M)
            if '"-end-"' not in line]


def verdict(row, text, bounded=False):
    """What is wrong with the outcome; empty if nothing."""
    errors = number(r"errors: (\d+)", text)
    if not row.right:
        kind = "acceptance cycle" if row.live else "assertion violated"
        if errors == 0:
            return "NOT FOUND"
        return "" if re.search(rf"^pan:\d+: {kind}", text, re.M) else "another error than expected"
    if errors != 0:
        return "FAILS"
    if bounded:
        return ""
    for sign in ("Search not completed", "max search depth too small", "out of memory"):
        if sign in text:
            return f"not exhaustive: {sign}"
    if row.whole and unreached(text):
        return "never reached: " + "; ".join(unreached(text))
    return ""


def check(row, bounded=False):
    """Searches in full, or bounded: takes a state for visited whose bits are set by others."""
    with tempfile.TemporaryDirectory(prefix="terrace-model-") as directory:
        start = time.monotonic()
        try:
            flags = [] if row.live else ["-DSAFETY"]
            store = ["-DBITSTATE"] if bounded else ["-DCOLLAPSE"] if row.collapse else []
            build(row, directory, flags + store)
            search = ["./pan", f"-m{row.depth}"] + (["-a", "-f"] if row.live else [])
            _, text = run(search + ([f"-w{BOUND}"] if bounded else []), directory)
            problem = verdict(row, text, bounded)
            outcome = "passes" if row.right else "found"
            outcome += " (bounded search)" if bounded else ""
            states = number(r"([\d.e+]+) states, stored", text)
            memory = number(r"([\d.]+)\ttotal actual memory", text)
        except Broken as broken:
            problem, outcome, states, memory = str(broken), "", 0.0, 0.0
        return row, problem or outcome, not problem, states, memory, time.monotonic() - start


def check_all(rows, jobs, bounded=(), recording=False):
    """`bounded` has the names of the rows for which a bounded search is enough."""
    start = time.monotonic()
    print(f"{'model':10} {'variant':{LIST_WIDTH}} {'states':>11} {'MiB':>6} {'s':>6}  outcome")
    good = 0
    # Taken before the search: what is edited meanwhile counts as changed.
    prints = {row.name: record.fingerprint(row, HERE) for row in rows}
    verified = {}
    with ThreadPoolExecutor(jobs) as pool:
        done = pool.map(lambda row: check(row, row.name in bounded), rows)
        for row, outcome, fine, states, memory, seconds in done:
            good += fine
            if fine:
                verified[row.name] = prints[row.name]
            print(f"{row.model:10} {row.name:{LIST_WIDTH}} {states:11.0f} {memory:6.0f} "
                  f"{seconds:6.1f}  {'' if fine else 'WRONG: '}{outcome}: {row.about}", flush=True)
    print(f"{good} of {len(rows)} as expected, {time.monotonic() - start:.0f} s")
    if recording:
        record.write(verified, [row.name for row in ROWS], HERE)
    return 0 if good == len(rows) else 1


def unchanged(rows):
    """The right rows that were searched in full as they are; a mutant's search ends at its error, bounded or not."""
    known = record.read(HERE)
    same = {row.name for row in rows if known.get(row.name) == record.fingerprint(row, HERE)}
    for row in rows:
        if row.name not in same:
            print(f"{row.name}: model or sources are not as recorded; once it is as expected: check.py --record {row.name}")
    return {row.name for row in rows if row.right and row.name in same}


def trace(row):
    with tempfile.TemporaryDirectory(prefix="terrace-model-") as directory:
        build(row, directory, [] if row.live else ["-DSAFETY", "-DBFS"])
        run(["./pan", f"-m{row.depth}"] + (["-a", "-f"] if row.live else []), directory)
        if not list(Path(directory).glob("*.trail")):
            raise Broken("there is no error")
        model = HERE / f"{row.model}.pml"
        shutil.copy(next(Path(directory).glob("*.trail")), Path(directory) / "trail")
        _, text = run(["spin", *(f"-D{flag}" for flag in row.flags), "-k", "trail", "-p", "-g",
                       str(model)], directory)
        print(text)
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="rows to check; default: all")
    parser.add_argument("--jobs", type=int, default=2, help="searches at a time (default 2)")
    parser.add_argument("--names", action="store_true", dest="bare", help="print the rows' names")
    way = parser.add_mutually_exclusive_group()
    way.add_argument("--if-changed", action="store_true", help="in full what is not as recorded, bounded the rest")
    way.add_argument("--record", action="store_true", help="in full, and write the record")
    parser.add_argument("--list", action="store_true", help="print the rows")
    parser.add_argument("--trace", metavar="NAME", help="print a short way to its error")
    given = parser.parse_args()
    rows = {row.name: row for row in ROWS}
    unknown = set(given.names + ([given.trace] if given.trace else [])) - set(rows)
    if unknown:
        parser.error(f"no such row: {', '.join(sorted(unknown))}")
    if given.list:
        for row in ROWS:
            kind = "must pass" if row.right else "must fail"
            print(f"{row.model:10} {row.name:{LIST_WIDTH}} {kind}  {row.about}")
        return 0
    if given.bare:
        print("\n".join(rows))
        return 0
    if shutil.which("spin") is None or shutil.which("cc") is None:
        print("models: skipped, needs spin and cc (on Debian and Ubuntu: spin, gcc)")
        return SKIPPED
    if given.trace:
        try:
            return trace(rows[given.trace])
        except Broken as broken:
            print(broken, file=sys.stderr)
            return 1
    chosen = [rows[name] for name in given.names] or ROWS
    return check_all(chosen, given.jobs, unchanged(chosen) if given.if_changed else (), given.record)


if __name__ == "__main__":
    sys.exit(main())
