# SPDX-License-Identifier: MIT OR Apache-2.0
"""programs/caches.c, and core files of it, for the debugger's tests on object caches."""

import shutil
import subprocess

import pytest
from conftest import ROOT
from debugged import BUILD, aborted, compiled
from debugged_umem import UMEM, UMEM_MALLOC


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    options = [f"-I{ROOT / 'include'}", str(UMEM), f"-Wl,-rpath,{BUILD}"]
    return compiled(tmp_path_factory.mktemp("program"), *options, name="caches")


@pytest.fixture(scope="module")
def stripped(tmp_path_factory):
    """The same with copies of the libraries that have no symbols."""
    if shutil.which("strip") is None:
        pytest.skip("no strip")
    directory = tmp_path_factory.mktemp("stripped")
    copy = directory / "libumem_malloc.so"
    subprocess.run(["strip", "-o", copy, UMEM_MALLOC.resolve()], check=True)
    return str(copy)


@pytest.fixture(scope="module")
def core(program, tmp_path_factory):
    return aborted(program, tmp_path_factory.mktemp("core"), "usual", 6, LD_PRELOAD="")


@pytest.fixture(scope="module")
def audited_core(program, tmp_path_factory):
    directory = tmp_path_factory.mktemp("core")
    return aborted(program, directory, "usual", 6, LD_PRELOAD="", UMEM_DEBUG="default")
