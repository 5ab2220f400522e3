# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the project's own build of a peer compiles, with made-up sources."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

RECIPES = Path(__file__).resolve().parents[2] / "bench" / "peers" / "recipes"


@pytest.mark.skipif(shutil.which("cmake") is None, reason="needs cmake")
def test_tcmalloc_is_built_without_what_needs_gmock(tmp_path):
    tcmalloc = tmp_path / "tcmalloc" / "tcmalloc"
    status = tmp_path / "abseil-cpp" / "absl" / "status"
    (tcmalloc / "internal").mkdir(parents=True)
    (status / "internal").mkdir(parents=True)
    for number in range(40):
        (tcmalloc / f"part{number}.cc").touch()
    (tcmalloc / "internal" / "percpu_rseq_asm.S").touch()
    (status / "status.cc").touch()
    for name in ("status_matchers.cc", "internal/status_matchers.cc"):
        (status / name).write_text("#include <gmock/gmock.h>\n")
    build = tmp_path / "build"
    subprocess.run(
        ["cmake", "-S", RECIPES / "tcmalloc", "-B", build, f"-DSOURCES={tmp_path}",
         "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON"],
        check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    commands = json.loads((build / "compile_commands.json").read_text())
    compiled = {Path(command["file"]).name for command in commands}
    assert "status.cc" in compiled
    assert "status_matchers.cc" not in compiled
