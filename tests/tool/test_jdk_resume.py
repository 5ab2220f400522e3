# SPDX-License-Identifier: MIT OR Apache-2.0
"""`terrace jdk build` that was interrupted goes on where it was, with a source of a few lines."""

import hashlib
import io
import shutil
import tarfile
import time

import pytest

from terrace.jdk import build as jdk_build
from terrace.jdk import source as jdk_source
from terrace.checkout import Checkout
from terrace.errors import TerraceError

# Each object is logged when it is begun; the one of which `hold` has the name is never done.
MAKEFILE = """
libjvm = support/modules_libs/java.base/server/libjvm.so
objects = $(foreach n,1 2 3 4 5 6,hotspot/variant-server/libjvm/objs/$(n).o)
.PHONY: hotspot-server-libs
hotspot-server-libs: $(libjvm)
$(libjvm): $(objects)
\t@mkdir -p $(@D); cat $^ > $@
%.o:
\t@mkdir -p $(@D); echo $(*F) >> begun; echo half > $@
\t@if [ "$$(cat hold)" = "$(*F)" ]; then sleep 300; fi
\t@echo $(*F) > $@
"""
CONFIGURE = """#!/bin/sh
echo configured >> ../configured
cp ${0%/*}/Makefile Makefile
echo none > hold
"""
JAVA = """#!/bin/sh
echo "$@" >> ${0%/bin/java}/dumped
"""
VERSION = "25.0.3+9"


def archive_of(files):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo(f"source/{name}")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    return stream.getvalue()


def put_jdk(home):
    (home / "bin").mkdir(parents=True)
    (home / "lib" / "server").mkdir(parents=True)
    (home / "release").write_text(f'JAVA_RUNTIME_VERSION="{VERSION}"\n')
    (home / "lib" / "server" / "libjvm.so").write_text("stock")
    for name in ("java", "javac"):
        (home / "bin" / name).write_text(JAVA)
        (home / "bin" / name).chmod(0o755)
    return home


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A queue without patches, a source whose build is six objects, an engine that is built."""
    for tool in ("make", "tar", "patch"):
        if shutil.which(tool) is None:
            pytest.skip(f"there is no {tool}")
    content = archive_of({"configure": CONFIGURE, "Makefile": MAKEFILE})
    (tmp_path / "source.tar").write_bytes(content)
    hotspot = tmp_path / "integrations" / "hotspot"
    (hotspot / "patches").mkdir(parents=True)
    (hotspot / "source.txt").write_text(
        f"version {VERSION}\narchive pool/source.tar\nbytes {len(content)}\n"
        f"sha256 {hashlib.sha256(content).hexdigest()}\nunpacked source\n"
    )
    engine = tmp_path / "engine"
    engine.mkdir()
    (engine / "libterrace_lab.a").touch()
    monkeypatch.setattr(jdk_build, "_build_engine", lambda _: engine)
    monkeypatch.setenv("TERRACE_JDK_SOURCE", str(tmp_path / "source.tar"))
    monkeypatch.setenv("TERRACE_JDK_DIR", str(tmp_path / "jdk"))
    monkeypatch.setenv("JAVA_HOME", str(put_jdk(tmp_path / "installed")))
    return Checkout(tmp_path)


def objects_of(checkout):
    return jdk_source.work_directory(checkout) / "build-release"


def begun(checkout):
    return (objects_of(checkout) / "begun").read_text().split()


def interrupt_at(checkout, monkeypatch, number):
    """Builds until that object is begun, and interrupts it then as Ctrl-C does."""
    objects = objects_of(checkout)
    configure = jdk_build._configure

    def configure_and_hold(*words):
        configure(*words)
        (objects / "hold").write_text(number)

    def watch(*_):
        deadline = time.monotonic() + 30
        while not (objects / "begun").exists() or number not in begun(checkout):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(jdk_build, "_configure", configure_and_hold)
        patch.setattr(jdk_build, "_watch", watch)
        patch.setattr(jdk_build.build, "available_cpus", lambda: 1)
        with pytest.raises(KeyboardInterrupt):
            jdk_build.build_jdk(checkout)
    (objects / "hold").write_text("none")


def test_an_interrupted_compile_goes_on_with_the_object_that_was_not_done(checkout, monkeypatch):
    interrupt_at(checkout, monkeypatch, "4")
    assert begun(checkout) == ["1", "2", "3", "4"]
    image = jdk_build.build_jdk(checkout)
    assert sorted(begun(checkout)) == ["1", "2", "3", "4", "4", "5", "6"]
    assert (image / "lib/server/libjvm.so").read_text().split() == ["1", "2", "3", "4", "5", "6"]
    assert (image / "terrace-complete").exists()
    configured = jdk_source.work_directory(checkout) / "configured"
    assert configured.read_text().split() == ["configured"]


def test_what_is_complete_is_not_done_again(checkout):
    image = jdk_build.build_jdk(checkout)
    dumped = (image / "dumped").read_text()
    assert jdk_build.build_jdk(checkout) == image
    assert len(begun(checkout)) == 6
    assert (image / "dumped").read_text() == dumped


def test_other_words_for_configure_begin_again(checkout, monkeypatch):
    jdk_build.build_jdk(checkout)
    monkeypatch.setattr(jdk_build, "LEFT_OUT", ("zgc",))
    jdk_build.build_jdk(checkout)
    assert len(begun(checkout)) == 6  # of the new directory
    configured = jdk_source.work_directory(checkout) / "configured"
    assert len(configured.read_text().split()) == 2


def test_half_a_tree_and_half_a_copy_are_thrown_away(checkout):
    work = jdk_source.work_directory(checkout)
    for name in ("source.unpacking/source", "jdk-release.copying/bin"):
        (work / name).mkdir(parents=True)
        (work / name / "half").write_text("half")
    image = jdk_build.build_jdk(checkout)
    assert not list(work.rglob("half"))
    assert (image / "bin" / "java").exists()


def test_class_data_archives_that_were_interrupted_are_dumped_again(checkout, monkeypatch):
    def fail(*_, **__):
        raise KeyboardInterrupt

    image = jdk_build.build_jdk(checkout)
    (objects_of(checkout) / "hotspot/variant-server/libjvm/objs/1.o").write_text("changed")
    with monkeypatch.context() as patch:
        patch.setattr(jdk_build, "run_tool", fail)
        with pytest.raises(KeyboardInterrupt):
            jdk_build.build_jdk(checkout)
    assert not (image / "terrace-complete").exists()
    before = len((image / "dumped").read_text().splitlines())
    jdk_build.build_jdk(checkout)
    assert len((image / "dumped").read_text().splitlines()) == before + 3
    assert (image / "terrace-complete").exists()


def test_a_compile_that_fails_is_told_with_its_last_lines(checkout):
    jdk_build.build_jdk(checkout)
    objects = objects_of(checkout)
    (objects / "Makefile").write_text("hotspot-server-libs:\n\t@echo what is wrong; exit 1\n")
    with pytest.raises(TerraceError, match="what is wrong"):
        jdk_build.build_jdk(checkout)
