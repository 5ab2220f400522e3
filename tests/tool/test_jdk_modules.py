# SPDX-License-Identifier: MIT OR Apache-2.0
"""`terrace jdk build`: what the queue changes in lib/modules and lib/jfr of the copied JDK."""

from pathlib import Path

import pytest
from terrace.jdk import modules as jdk_modules
from terrace.checkout import Checkout

CLASS = "src/jdk.some/share/classes/some/Thing.java"
SETTINGS = "src/jdk.jfr/share/conf/jfr/default.jfc"
AGENT = "jdk.hotspot.agent/sa.properties"
BUILT = "sun.jvm.hotspot.runtime.VM.saBuildVersion"
METADATA = "src/hotspot/share/jfr/metadata/metadata.xml"


@pytest.fixture
def checkout(tmp_path):
    (tmp_path / "integrations" / "hotspot" / "patches").mkdir(parents=True)
    return Checkout(tmp_path)


@pytest.fixture
def tree(tmp_path):
    for name in (CLASS, SETTINGS, METADATA):
        (tmp_path / "tree" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "tree" / name).write_text(f"patched {name}")
    return tmp_path / "tree"


def touch(checkout, *names):
    text = "".join(f"--- a/{n}\n+++ b/{n}\n@@ -1 +1 @@\n-a\n+b\n" for n in names)
    (checkout.root / "integrations" / "hotspot" / "patches" / "01.diff").write_text(text)


@pytest.fixture
def commands(monkeypatch):
    """What would be run, in place of the JDK's tools: each writes its output, if it has one."""
    seen = []

    def run(words, **_):
        seen.append(words)
        if "extract" in words:
            (Path(words[3]) / "jdk.hotspot.agent").mkdir(parents=True)
            (Path(words[3]) / AGENT).write_text(f"{BUILT}=25.0.3+9-LTS\n")
        if words[-1].endswith("image"):
            Path(words[-1]).write_text((Path(words[-2]) / AGENT).read_text())

    monkeypatch.setattr(jdk_modules, "run_tool", run)
    return seen


def update(checkout, tree, tmp_path):
    for name in ("lib/jfr", "lib"):
        (tmp_path / "jdk-release" / name).mkdir(parents=True, exist_ok=True)
    generator = tmp_path / "objects" / "t" / "build" / "tools" / "jfr" / "GenerateJfrFiles.class"
    generator.parent.mkdir(parents=True, exist_ok=True)
    generator.touch()
    image = tmp_path / "jdk-release"
    return jdk_modules.update(checkout, tmp_path / "jdk", tree, tmp_path / "objects", image)


def test_what_the_queue_touches_is_sorted_by_what_it_needs(checkout, tree):
    touch(checkout, "src/hotspot/share/gc/shared/hab.cpp", CLASS, SETTINGS, METADATA)
    found = jdk_modules.changes(checkout, tree)
    assert found.classes == {"jdk.some": [tree / CLASS]}
    assert found.settings == [tree / SETTINGS]
    assert found.metadata == tree / METADATA


def test_a_queue_for_libjvm_alone_leaves_the_modules(checkout, tree, tmp_path, commands):
    touch(checkout, "src/hotspot/share/gc/shared/hab.cpp")
    assert not update(checkout, tree, tmp_path)
    assert not commands


def test_modules_are_written_once(checkout, tree, tmp_path, commands):
    touch(checkout, CLASS, SETTINGS, METADATA)
    assert update(checkout, tree, tmp_path)
    lib = tmp_path / "jdk-release" / "lib"
    assert (lib / "modules").read_text() == f"{BUILT}=25.0.3+9-terrace\n"  # as jhsdb expects it
    assert (lib / "jfr" / "default.jfc").read_text() == f"patched {SETTINGS}"
    joined = [" ".join(words) for words in commands]
    assert any("--patch-module jdk.some=" in w and w.endswith("Thing.java") for w in joined)
    assert any(words.endswith("jdk.jfr/jdk/jfr/internal/types/metadata.bin") for words in joined)
    commands.clear()
    assert not update(checkout, tree, tmp_path)
    assert not commands


def test_another_change_writes_them_anew(checkout, tree, tmp_path, commands):
    touch(checkout, CLASS)
    assert update(checkout, tree, tmp_path)
    (tree / CLASS).write_text("patched again")
    assert update(checkout, tree, tmp_path)


def test_modules_are_as_they_were_when_the_queue_leaves_them(checkout, tree, tmp_path, commands):
    touch(checkout, CLASS)
    assert update(checkout, tree, tmp_path)
    commands.clear()
    touch(checkout, "src/hotspot/share/gc/shared/hab.cpp")
    assert update(checkout, tree, tmp_path)
    assert not any("javac" in words[0] for words in commands)
