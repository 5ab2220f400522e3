# SPDX-License-Identifier: MIT OR Apache-2.0
"""The queue applies to HotSpot's source, what it changes compiles, the engine has what it calls.

The source is fetched once (74 MB). Where it can not be had, or there is no JDK, the tests are
skipped, but not where everything has to run: TERRACE_CI.
"""

import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import hotspot_compile
import pytest
from conftest import ROOT
from hotspot_compile import AARCH64, ASSERTIONS, RELEASE, X86, Compiler

from terrace.jdk import source as jdk_source
from terrace.checkout import Checkout
from terrace.errors import TerraceError


def missing(reason):
    """Skips, or fails where nothing may be skipped."""
    if os.environ.get("TERRACE_CI"):
        pytest.fail(reason)
    pytest.skip(reason)


def touched():
    """The files of the queue, and whether it makes them."""
    return jdk_source.touched_by_queue(Checkout(ROOT))


@pytest.fixture(scope="session")
def tree():
    """The needed part of the source with the queue as it is."""
    for tool in ("java", "javac", "g++", "patch", "tar", "xz", "nm"):
        if shutil.which(tool) is None:
            missing(f"there is no {tool}")
    checkout = Checkout(ROOT)
    try:
        jdk_source.fetch(checkout, jdk_source.read_source(checkout))
    except TerraceError as error:
        missing(f"HotSpot's source can not be had: {error}")
    tree = hotspot_compile.unpack_part(checkout, [n for n, new in touched().items() if not new])
    jdk_source.apply(checkout, tree)
    return tree


@pytest.fixture(scope="session")
def java_headers(tree, tmp_path_factory):
    generated = tmp_path_factory.mktemp("generated") / "java"
    hotspot_compile.make_java_headers(tree, generated)
    return generated


def compiler_for(machine, tree, java_headers):
    if shutil.which(machine.compiler) is None:
        (missing if machine.is_this_one else pytest.skip)(f"there is no {machine.compiler}")
    generated = java_headers.parent / machine.cpu
    if not generated.exists():
        shutil.copytree(java_headers, generated)
        hotspot_compile.make_instructions(tree, machine, generated)
    return Compiler(Checkout(ROOT), tree, generated, machine)


def compiled_files(machine):
    """Of the queue; other processors' are left out, and tests, which HotSpot's build compiles."""
    for name in (name for name in touched() if name.startswith("src/")):
        part = name.removeprefix("src/hotspot/cpu/").removeprefix("src/hotspot/os_cpu/linux_")
        if part == name or part.startswith(f"{machine.cpu}/"):
            yield name


def check_all(compiler, names):
    """Compiles with and without assertions; fails with what the compiler says of one file.

    With assertions, for this processor, each alone: it includes what it needs. Otherwise groups
    are compiled; every third file of the sorted ones, as neighbours have static names in common.
    """
    alone = compiler.machine.is_this_one
    groups = [names[i::3] for i in range(min(3, len(names)))]
    tasks = [(compiler.check_together, group, RELEASE) for group in groups]
    if alone:
        tasks += [(compiler.check, name, ASSERTIONS) for name in names]
    else:
        tasks += [(compiler.check_together, group, ASSERTIONS) for group in groups]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        said = pool.map(lambda task: task[0](*task[1:]), tasks)
        for (_, what, level), text in zip(tasks, said, strict=True):
            if text:
                pool.shutdown(cancel_futures=True)
                pytest.fail(f"{what}, {level}:\n{text}", pytrace=False)


def test_the_queue_applies(tree):
    assert all((tree / name).is_file() for name in touched())
    assert jdk_source.apply(Checkout(ROOT), tree) == 0


@pytest.mark.parametrize("machine", [X86, AARCH64], ids=lambda machine: machine.cpu)
def test_the_changed_files_compile(tree, java_headers, machine):
    compiler = compiler_for(machine, tree, java_headers)
    files = sorted(n for n in compiled_files(machine) if n.endswith(".cpp"))
    assert len(files) >= 6
    check_all(compiler, files)
    included = compiler.headers()
    alone = [n for n in compiled_files(machine) if n.endswith(".hpp") and n not in included]
    check_all(compiler, alone)


def test_a_fault_in_a_changed_file_is_found(tree, java_headers):
    compiler = compiler_for(X86, tree, java_headers)
    name = "src/hotspot/share/gc/shared/hab.cpp"
    broken = tree / f"{name.removesuffix('.cpp')}-broken.cpp"
    broken.write_text((tree / name).read_text() + "static int x = HAB::no_such_member;\n")
    names = ["src/hotspot/share/gc/shared/habLayout.cpp", str(broken.relative_to(tree))]
    try:
        assert "no_such_member" in compiler.check(names[1], RELEASE)
        assert "no_such_member" in compiler.check_together(names, RELEASE)
    finally:
        broken.unlink()


def test_the_engine_has_what_the_queue_calls(tree, java_headers, tmp_path):
    archive = os.environ.get("TERRACE_LAB_ARCHIVE")  # ctest knows it
    if not archive:
        missing("the engine's archive is not built")
    wanted = set()
    for name in compiled_files(X86):
        if name.endswith(".cpp") and "terrace/" in (tree / name).read_text():
            file = tmp_path / f"{name.replace('/', '-')}.o"
            compiler_for(X86, tree, java_headers).object(name, file)
            wanted |= {s for s in hotspot_compile.symbols(file, True) if s.startswith("terrace_")}
    assert len(wanted) >= 8
    assert wanted <= hotspot_compile.symbols(Path(archive), False)
