# SPDX-License-Identifier: MIT OR Apache-2.0
"""What calls.cpp does must be found in its traces, no more and no less."""

import signal
import struct
import sys
from collections import Counter
from pathlib import Path

from harness import Tools, main

PAGE = 4096
WORKERS, BLOCKS = 4, 500


def pair(kind: str, size: int, alignment: int = 1) -> list[tuple[str, int, int]]:
    return [(kind, size, alignment), ("free", size, 1)]


KINDS = [
    *pair("malloc", 100_003),
    *pair("calloc", 3 * 100_019),
    *pair("aligned", 128 * 1001, 64),
    *pair("aligned", 100_043, 4096),
    *pair("aligned", 100_049, 256),
    ("malloc", 100_057, 1),
    ("realloc", 200_003, 1),
    ("realloc", 3 * 100_069, 1),
    ("free", 3 * 100_069, 1),
    *pair("aligned", 100_103, 4096),
    *pair("malloc", 100_109),
]


def every_kind(tools: Tools, scratch: Path) -> None:
    status, traces = tools.record(scratch, "kinds")
    assert (status, len(traces)) == (0, 1)
    assert [call.plain for call in tools.known(traces[0])] == KINDS
    assert tools.summary(traces[0])["unknown"] == 0


def on_terrace(tools: Tools, scratch: Path) -> None:
    """Its operator new does not call malloc."""
    status, traces = tools.record(scratch, "kinds", below=[tools.library])
    assert status == 0
    assert [call.plain for call in tools.known(traces[0])] == KINDS[:-2]


def threads_free_each_others_blocks(tools: Tools, scratch: Path) -> None:
    status, traces = tools.record(scratch, "threads")
    assert (status, len(traces)) == (0, 1)
    calls = tools.known(traces[0])
    made = {call.new: call for call in calls if call.kind == "malloc"}
    freed = [call for call in calls if call.kind == "free"]
    assert len(made) == len(freed) == WORKERS * BLOCKS
    by_size = Counter(call.size for call in made.values())
    assert by_size == {70_001 + i: BLOCKS for i in range(WORKERS)}
    # One thread has made all blocks of a size, another has freed them, in the order in which they were made.
    for size in by_size:
        makers = {call.thread for call in made.values() if call.size == size}
        freers = {call.thread for call in freed if call.size == size}
        assert len(makers) == len(freers) == 1
        assert makers != freers
        order = [call.old for call in freed if call.size == size]
        assert order == sorted(order)
    assert tools.summary(traces[0])["from_other_threads"] == WORKERS * BLOCKS


def fork_makes_two_traces(tools: Tools, scratch: Path) -> None:
    status, traces = tools.record(scratch, "fork")
    assert (status, len(traces)) == (0, 2)
    parent, child = traces
    assert [call.plain for call in tools.known(parent)] == pair("malloc", 110_017)
    assert [call.plain for call in tools.known(child)] == pair("malloc", 110_023)
    told = tools.summary(child)
    assert told["parent"] == tools.summary(parent)["process"] == int(parent.name)
    assert told["unknown"] >= 1  # the parent's block, freed by the child


def killed_process_has_a_whole_trace(tools: Tools, scratch: Path) -> None:
    status, traces = tools.record(scratch, "die")
    assert status == -signal.SIGKILL
    calls = tools.known(traces[0])
    assert [call.plain for call in calls] == pair("malloc", 120_011) * 30_000 + [("malloc", 120_017, 1)]


def exec_makes_two_traces(tools: Tools, scratch: Path) -> None:
    status, traces = tools.record(scratch, "exec")
    assert status == 0
    assert [trace.name for trace in traces] == [traces[0].name, traces[0].name + ".2"]
    assert [call.plain for call in tools.known(traces[0])] == pair("malloc", 130_003)
    assert [call.plain for call in tools.known(traces[1])] == KINDS


def closed_descriptors_do_no_harm(tools: Tools, scratch: Path) -> None:
    status, traces = tools.record(scratch, "close")
    assert status == 0
    assert [call.plain for call in tools.known(traces[0])] == pair("malloc", 140_009) * 200_000


def handlers_do_no_harm(tools: Tools, scratch: Path) -> None:
    """raise() comes between two calls, so the handler's are recorded."""
    status, traces = tools.record(scratch, "handlers")
    assert status == 0
    expected = [*pair("malloc", 150_011), *pair("malloc", 150_001)] * 1000
    assert [call.plain for call in tools.known(traces[0])] == expected


def exit_without_cleaning_up(tools: Tools, scratch: Path) -> None:
    status, traces = tools.record(scratch, "exit")
    assert status == 7
    assert [call.plain for call in tools.known(traces[0])] == pair("malloc", 160_001)


def refused(tools: Tools, path: Path, text: str) -> None:
    done = tools.read("summary", path)
    assert done.returncode == 2, (path.name, done)
    assert text in done.stderr, (path.name, done.stderr)
    assert done.stderr.count("\n") == 1


def damaged_files(good: bytes, scratch: Path) -> list[tuple[Path, str]]:
    """Files that a reader must refuse, and what it must say."""
    chunk = good.index(b"Chnk", PAGE)
    events = chunk + 24

    def patched(offset: int, patch: bytes) -> bytes:
        return good[:offset] + patch + good[offset + len(patch):]

    cases = {
        "empty": (b"", "no trace"),
        "text": (b"text\n" * 2000, "no trace"),
        "version": (patched(8, struct.pack("<I", 99)), "version 99"),
        "half": (good[: chunk + PAGE // 2], "truncated"),
        "tail": (good[:-1], "truncated"),
        "magic": (patched(chunk, b"Chnq"), "no chunk"),
        "length": (patched(chunk + 4, struct.pack("<I", 5000)), "no chunk"),
        "huge": (patched(chunk + 4, struct.pack("<I", 1 << 30)), "truncated"),
        "used": (patched(chunk + 12, struct.pack("<I", 5000)), "no chunk"),
        "thread": (patched(chunk + 8, struct.pack("<I", 1 << 30)), "no chunk"),
        "kind": (patched(events, b"\x07"), "no event"),
        "number": (patched(events + 1, b"\xff" * 16), "no event"),
        "cut event": (patched(chunk + 12, struct.pack("<I", struct.unpack_from("<I", good, chunk + 12)[0] - 1)), "no event"),
    }
    made = []
    for name, (content, text) in cases.items():
        path = scratch / name
        path.write_bytes(content)
        made.append((path, text))
    made.append((scratch / "not there", "No such file"))
    return made


def damaged_files_are_refused(tools: Tools, scratch: Path) -> None:
    _, traces = tools.record(scratch, "kinds")
    good = traces[0].read_bytes()
    for path, text in damaged_files(good, scratch):
        refused(tools, path, text)
    # A page that was reserved and never used is no damage.
    (scratch / "reserved").write_bytes(good + bytes(PAGE))
    assert tools.known(scratch / "reserved") == tools.known(traces[0])


CASES = (
    every_kind, on_terrace, threads_free_each_others_blocks, fork_makes_two_traces, killed_process_has_a_whole_trace,
    exec_makes_two_traces, closed_descriptors_do_no_harm, handlers_do_no_harm, exit_without_cleaning_up, damaged_files_are_refused,
)

if __name__ == "__main__":
    sys.exit(main(CASES))
