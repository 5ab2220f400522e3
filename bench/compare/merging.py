# SPDX-License-Identifier: MIT OR Apache-2.0
"""`bench compare --merge`: reads the files of several machines and writes one report, merged.html, .md, .svg and .json."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import merged_tables as tables
import picture
from medians import Estimate
from merged import Machine, Merged, merge
from merged_plots import all_plots
from metrics import TIME, WORK_METRICS
from report import Table
from tables import as_json
from webpage import Content, as_markdown, document

TITLE = "Terrace beside other allocators, on several machines"
TOLD = ("machine", f"per-{TIME.key}", f"means-{TIME.key}", "summary", "alike")  # on the terminal, what matters most at the end
LINKS = (("summary", "Summary"), ("means-seconds", "Time"))


def _number(found: Estimate | None) -> dict[str, float] | None:
    return None if found is None else asdict(found)


def _of_machine(machine: Machine) -> dict[str, Any]:
    """What was measured there, with Terrace's ratios to the best other allocator; null where there is none."""
    ratios = {
        w: {m.key: {"best": x.best, **asdict(x.ratio)} if (x := machine.data.against_other(m, w)) else None for m in WORK_METRICS}
        for w in machine.data.workloads
    }
    means = {m.key: {s: _number(machine.shared.mean_to_others(m, s)) for s in machine.shared.sections} for m in WORK_METRICS}
    return {"name": machine.label, "file": str(machine.path), "header": asdict(machine.data.header), "means": means, "workloads": ratios}


def _raw(data: Merged, sentences: Sequence[str], shown: Sequence[Table]) -> str:
    content = {
        "reference": data.reference,
        "findings": sentences,
        "machines": [_of_machine(machine) for machine in data.machines],
        "tables": as_json(shown),
    }
    return json.dumps(content, indent=1) + "\n"


def _where(data: Merged) -> str:
    return "; ".join(", ".join(filter(None, [m.label, m.data.header.began])) for m in data.machines)


def report(paths: Sequence[Path], out: Path) -> tuple[list[Table], list[str]]:
    """Raises MergeError. Gives the tables and sentences for the terminal."""
    data = merge(paths)
    shown, sentences = tables.all_tables(data), list(tables.sentences(data))
    content = Content(TITLE, _where(data), sentences, shown, all_plots(data), LINKS)
    out.mkdir(parents=True, exist_ok=True)
    (out / "merged.html").write_text(document(content), encoding="utf-8")
    (out / "merged.md").write_text(as_markdown(content), encoding="utf-8")
    (out / "merged.json").write_text(_raw(data, sentences, shown), encoding="utf-8")
    picture.draw([(m.label, m.shared) for m in data.machines], out / "merged.svg")
    told = {t.name: t for t in shown}
    return [told[name] for name in TOLD if name in told], sentences
