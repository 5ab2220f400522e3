# SPDX-License-Identifier: MIT OR Apache-2.0
"""malloc and free called from within a transaction: lines they write, and how many calls a transaction can hold."""

import argparse
import json
import tempfile
from dataclasses import asdict
from pathlib import Path

import footprint
from interleave import Subject
from report import Report
from workload import Failed

SIZES = (64, 1010, 4096)
NODES = 250

Row = dict[str, float | str]


def _one(options: argparse.Namespace, subject: Subject, size: int, nodes: int, scratch: Path) -> Row:
    try:
        recording = footprint.record(options.build, subject, size, nodes, scratch)
    except Failed as why:
        return {"failed": str(why)}
    row: Row = dict(asdict(footprint.pair(recording, size)))
    for region in ("allocate", "release"):
        for policy in ("lru", "tree_plru"):
            held = footprint.held(options.build, recording.regions[region], policy)
            row[f"{region}.{policy}"] = held.steps
            row[f"{region}.{policy}.reason"] = held.reason
    return row


def measure(options: argparse.Namespace, chosen: list[Subject], sizes: tuple[int, ...], nodes: int) -> dict[str, Row]:
    """By NAME/SIZE. Counted once: a count does not drift."""
    kept = options.out / "seeds-index-footprint.json"
    if options.stored:
        stored: dict[str, Row] = json.loads(kept.read_text())
        return stored
    with tempfile.TemporaryDirectory() as directory:
        rows = {f"{s.name}/{size}": _one(options, s, size, nodes, Path(directory)) for s in chosen for size in sizes}
    kept.write_text(json.dumps(rows, indent=1) + "\n")
    return rows


def _table(rows: dict[str, Row], names: list[str], sizes: tuple[int, ...], page: Report) -> None:
    columns = ["malloc and free of a block"]
    for size in sizes:
        columns += [f"{size}: instructions", "lines read only", "lines written", "the allocator's", "of these rseq"]
    table = []
    for name in names:
        cells: list[object] = [name]
        for size in sizes:
            row = rows[f"{name}/{size}"]
            cells += ["-"] * 5 if "failed" in row else [f"{row[k]:g}" for k in ("instructions", "read", "written", "own", "rseq")]
        table.append(cells)
    page.table(columns, table)


def _calls(rows: dict[str, Row], names: list[str], sizes: tuple[int, ...], nodes: int, page: Report) -> None:
    page.say(f"Simulated: how many of {nodes} calls one transaction can hold, malloc with a store to the block, and free; LRU / "
             "tree-PLRU, and what ends it. Every load and store of the calls counts, the cache is empty at the beginning, the "
             "allocator's caches are not.")
    table = []
    for name in names:
        cells: list[object] = [name]
        for size in sizes:
            row = rows[f"{name}/{size}"]
            for region in ("allocate", "release"):
                if "failed" in row:
                    cells.append("-")
                    continue
                lru, tree, reason = (row[f"{region}.{k}"] for k in ("lru", "tree_plru", "lru.reason"))
                cells.append(f"{lru:g} / {tree:g}" + ("" if reason == "none" else f", {reason}"))
        table.append(cells)
    page.table(["allocator", *(f"{size}: {what}" for size in sizes for what in ("malloc", "free"))], table)


def _plot(rows: dict[str, Row], names: list[str], sizes: tuple[int, ...], nodes: int, page: Report) -> None:
    def bars(axis, key: str, label: str, limit: float | None) -> None:  # type: ignore[no-untyped-def]
        height = 0.8 / len(sizes)
        for n, size in enumerate(sizes):
            values = [float(rows[f"{name}/{size}"].get(key, 0)) for name in names]
            places = [y + (n - (len(sizes) - 1) / 2) * height for y in range(len(names))]
            axis.barh(places, values, height=height, label=f"{size:,} bytes")
        axis.set_yticks(range(len(names)), names, fontsize=8)
        axis.invert_yaxis()
        axis.set(xlabel=label)
        if limit is not None:
            axis.axvline(limit, color="k", ls="--", lw=1)

    def draw(axes) -> None:  # type: ignore[no-untyped-def]
        bars(axes[0], "own", "allocator's lines that a pair writes", None)
        bars(axes[1], "allocate.lru", "calls of malloc, with a store (LRU, simulated)", nodes)
        bars(axes[2], "release.lru", "calls of free (LRU, simulated)", nodes)
        axes[0].legend(fontsize=8)

    page.panels("index-footprint", 1, 3, draw)


def run(options: argparse.Namespace, page: Report, chosen: list[Subject]) -> None:
    sizes = SIZES[1:2] if options.smoke else SIZES
    nodes = 40 if options.smoke else NODES
    rows = measure(options, chosen, sizes, nodes)
    page.head("malloc and free within a transaction")
    present = dict.fromkeys(key.rpartition("/")[0] for key in rows)
    names = [name for name in present if any("failed" not in rows[f"{name}/{size}"] for size in sizes)]
    for name, row in rows.items():
        if "failed" in row:
            page.say(f"{name} bytes: not recorded: {row['failed']}")
    if not names:
        return
    page.say("Counted: a warm process is stepped through instruction by instruction, and each one's loads and stores are told from "
             "its operands and the registers. Lines of 64 bytes; written ones are those of the stack, of the block itself, and the "
             "allocator's own, of which one may be the line with the thread's restartable sequence. The kernel would restart such a "
             "sequence at each stop, so the thread is unregistered before: what is recorded is a thread that is left alone.")
    _table(rows, names, sizes, page)
    _calls(rows, names, sizes, nodes, page)
    _plot(rows, names, sizes, nodes, page)
    default = names[1]
    most = max(float(rows[f"{default}/{size}"]["own"]) for size in sizes)
    calls = sum(float(rows[f"{default}/{size}"]["calls"]) for size in sizes)
    page.finding(most <= 4 and calls == 0,
                 "malloc and free should be callable from within transactions with low odds of abort (article): a pair "
                 f"of {default} writes {most:g} lines of its own at most; pairs that make a system call: {calls:g}.")
    held = {size: float(rows[f"{default}/{size}"]["allocate.lru"]) for size in sizes}
    page.finding(min(held.values()) >= nodes, f"a structure of {nodes} nodes can be built in a transaction: {default} gets to "
                 + ", ".join(f"{n:g} ({size} bytes)" for size, n in held.items()) + " (LRU, simulated).",
                 "on the way the levels below are asked for more, and what they write or call counts, too")
