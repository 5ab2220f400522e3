# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the project's own build of a peer compiles, with made-up sources."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

RECIPES = Path(__file__).resolve().parents[2] / "bench" / "peers" / "recipes"


TCMALLOC = ("enable_heap_partitioning_default_on.cc", "want_hpaa.cc", "span_fuzz.cc", "span_benchmark.cc", "span_test.cc")
ABSEIL = ("status/status_matchers.cc", "status/internal/status_matchers.cc", "time/time_zone_name_win.cc")


@pytest.mark.skipif(shutil.which("cmake") is None, reason="needs cmake")
def test_tcmalloc_is_built_without_its_tests_and_without_what_other_systems_need(tmp_path):
    tcmalloc, abseil = tmp_path / "tcmalloc" / "tcmalloc", tmp_path / "abseil-cpp" / "absl"
    (tcmalloc / "internal").mkdir(parents=True)
    (abseil / "status" / "internal").mkdir(parents=True)
    (abseil / "time").mkdir()
    for name in (*(f"part{number}.cc" for number in range(40)), *TCMALLOC, "internal/percpu_rseq_asm.S"):
        (tcmalloc / name).touch()
    for name in ("status/status.cc", "time/clock.cc", *ABSEIL):
        (abseil / name).touch()
    build = tmp_path / "build"
    subprocess.run(
        ["cmake", "-S", RECIPES / "tcmalloc", "-B", build, f"-DSOURCES={tmp_path}",
         "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON"],
        check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    commands = json.loads((build / "compile_commands.json").read_text())
    compiled = {Path(command["file"]).name for command in commands}
    assert {"part0.cc", "status.cc", "clock.cc"} <= compiled
    assert not compiled & {Path(name).name for name in (*TCMALLOC, *ABSEIL)}
