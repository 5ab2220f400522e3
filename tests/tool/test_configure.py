# SPDX-License-Identifier: MIT OR Apache-2.0
"""Configuring where GoogleTest is not installed: README's line, and without any option."""

import re
import shlex
import shutil
import subprocess

import pytest

from conftest import ROOT

WITHOUT = ["-DCMAKE_DISABLE_FIND_PACKAGE_GTest=ON", "-DCMAKE_DISABLE_FIND_PACKAGE_benchmark=ON"]

pytestmark = pytest.mark.skipif(
    shutil.which("cmake") is None or shutil.which("ninja") is None, reason="needs cmake and ninja"
)


def configured(folder, command):
    done = subprocess.run(
        [*command, *WITHOUT, "-B", str(folder)],
        cwd=ROOT, capture_output=True, text=True, timeout=250, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    targets = subprocess.run(
        ["ninja", "-C", str(folder), "-t", "targets", "all"],
        capture_output=True, text=True, timeout=60, check=True,
    ).stdout  # fmt: skip
    assert "terrace_shared: phony" in targets
    assert "api_test" not in targets
    return done.stdout + done.stderr


def test_the_line_of_the_readme_needs_no_googletest(tmp_path):
    found = re.search(r"^    (cmake --preset .*)$", (ROOT / "README.md").read_text(), re.M)
    assert found is not None
    configured(tmp_path, shlex.split(found.group(1)))


def test_without_googletest_the_tests_are_left_out_with_a_word(tmp_path):
    said = configured(tmp_path, ["cmake", "--preset", "dev", "-DTERRACE_BENCH=OFF"])
    assert "GoogleTest was not found (Debian and Ubuntu: libgtest-dev): no tests will be" in said
