# SPDX-License-Identifier: MIT OR Apache-2.0
"""`terrace profile` of a program on libumem: objects of caches, and memory by size."""

import re

import pytest

for module in ("numpy", "scipy", "elftools", "rich", "google.protobuf"):
    pytest.importorskip(module)

# ruff: noqa: E402 - what follows needs these
from conftest import ROOT
from debugged import compiled, report, running
from debugged_umem import UMEM, UMEM_MALLOC, needs_umem
from sites import MIB, SAMPLED, profiled
from terrace.debug.sampled.symbolizer import has_unwinder

pytestmark = [
    needs_umem,
    pytest.mark.skipif(not has_unwinder(), reason="drgn unwinds nothing here"),
]


@pytest.mark.parametrize("library", [UMEM, UMEM_MALLOC], ids=lambda path: path.stem)
def test_sites_of_objects_have_their_bytes(tmp_path, library) -> None:
    options = ("-O2", f"-I{ROOT / 'include'}", str(library), f"-Wl,-rpath,{library.parent}")
    program = compiled(tmp_path, *options, name="kept_objects")
    with running(program, **SAMPLED, LD_PRELOAD="") as process:
        found = profiled(tmp_path, process.pid)
        usage = report("umastat", process.pid)
    for name, size in (("keep_objects", 16 * MIB), ("keep_sizes", 8 * MIB)):
        assert abs(found.get(name, 0) - size) < 5 * (size * 65536) ** 0.5, found
    assert found.get("reuse_objects", 0) < MIB, found
    # What is sampled is the cache's all the same, and what counters run through is no allocation.
    row = next(line for line in usage if re.match(r" *kept ", line)).replace(",", "").split()
    kept, pairs = -(-16 * MIB // 200), -(-64 * MIB // 200)
    assert str(kept) in row, row
    assert any(abs(int(n) - kept - pairs) < 100 for n in row if n.isdecimal()), row
