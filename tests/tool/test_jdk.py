# SPDX-License-Identifier: MIT OR Apache-2.0
"""`terrace jdk`: the queue and its length, the source, the JDK that is copied."""

import hashlib
import http.server
import importlib.util
import os
import threading

import pytest
from conftest import ROOT
from terrace import cli
from terrace.jdk import command as jdk
from terrace.jdk import build as jdk_build
from terrace.jdk import installed
from terrace.jdk import session as jdk_session
from terrace.jdk import source as jdk_source
from terrace.cli import parse
from terrace.checkout import Checkout
from terrace.errors import TerraceError

HOTSPOT = ROOT / "integrations" / "hotspot"

ORIGINAL = "one\ntwo\nthree\n"
CHANGE = """Subject: two is 2

--- a/dir/numbers.txt
+++ b/dir/numbers.txt
@@ -1,3 +1,3 @@
 one
-two
+2
 three
"""
NEW = """--- /dev/null
+++ b/dir/new.txt
@@ -0,0 +1 @@
+new
"""
SOURCE = """# a comment
version  25.0.3+9
archive  pool/source.tar.xz
bytes    %d
sha256   %s
unpacked source-25
"""


def load_counter():
    spec = importlib.util.spec_from_file_location("count_lines", HOTSPOT / "count_lines.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    (tmp_path / "integrations" / "hotspot" / "patches").mkdir(parents=True)
    (tmp_path / "build").mkdir()
    monkeypatch.setenv("TERRACE_JDK_DIR", str(tmp_path / "jdk"))
    monkeypatch.delenv("TERRACE_JDK_SOURCE", raising=False)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    return Checkout(tmp_path)


@pytest.fixture
def tree(checkout):
    tree = jdk_source.work_directory(checkout) / "tree"
    (tree / "dir").mkdir(parents=True)
    (tree / "dir" / "numbers.txt").write_text(ORIGINAL)
    return tree


def put_queue(checkout, **patches):
    directory = jdk_source.integration(checkout) / "patches"
    for old in directory.glob("*.diff"):
        old.unlink()
    for name, text in patches.items():
        (directory / f"{name}.diff").write_text(text)


# The queue.


def test_the_queue_is_short_enough():
    counter = load_counter()
    paths = sorted((HOTSPOT / "patches").glob("*.diff"))[: counter.BUFFERS]
    assert [path.stem[:2] for path in paths] == ["01", "02", "03", "04", "05"]
    counts = [counter.changed(path.read_text()) for path in paths]
    assert 100 < sum(code for code, _ in counts) < counter.LIMIT


def test_comments_and_blank_lines_are_no_code():
    counter = load_counter()
    lines = ["/*", " * words", " */", "", "// words", "int i; // words", "  \\", "  macro(x) \\"]
    assert counter.code_lines(lines) == 2
    assert counter.code_lines(["# words", "JVM_LIBS += x"], makefile=True) == 1
    assert counter.changed(CHANGE) == (2, 2)


def test_every_patch_names_its_licence():
    for path in jdk_source.queue(Checkout(ROOT)):
        text = path.read_text()
        assert "GPL-2.0-only WITH Classpath-exception-2.0" in text.partition("\n--- ")[0], path
        for part in text.split("--- /dev/null\n")[1:]:
            assert 'subject to the "Classpath" exception' in " ".join(
                line.lstrip("+ *") for line in part.splitlines()[:15]
            )


# The tree is brought to what the queue says.


def test_a_queue_is_applied_once(checkout, tree):
    put_queue(checkout, a=CHANGE, b=NEW)
    assert jdk_source.apply(checkout, tree) == 2
    assert (tree / "dir" / "numbers.txt").read_text() == "one\n2\nthree\n"
    os.utime(tree / "dir" / "numbers.txt", (1, 1))
    assert jdk_source.apply(checkout, tree) == 0
    assert (tree / "dir" / "numbers.txt").stat().st_mtime == 1  # is not compiled again


def test_a_queue_is_replaced_by_another(checkout, tree):
    put_queue(checkout, a=CHANGE, b=NEW)
    jdk_source.apply(checkout, tree)
    put_queue(checkout, a=CHANGE.replace("+2", "+II"))
    assert jdk_source.apply(checkout, tree) == 1
    assert (tree / "dir" / "numbers.txt").read_text() == "one\nII\nthree\n"
    assert not (tree / "dir" / "new.txt").exists()
    put_queue(checkout)
    assert jdk_source.apply(checkout, tree) == 1
    assert (tree / "dir" / "numbers.txt").read_text() == ORIGINAL


def test_a_file_that_one_patch_makes_and_the_next_changes_is_no_original(checkout, tree):
    changed = NEW.replace("/dev/null", "a/dir/new.txt").replace("@@ -0,0 +1 @@", "@@ -1 +1 @@")
    put_queue(checkout, a=NEW, b=changed.replace("+new\n", "-new\n+newer\n"))
    assert jdk_source.apply(checkout, tree) == 1
    assert jdk_source.apply(checkout, tree) == 0
    assert (tree / "dir" / "new.txt").read_text() == "newer\n"
    put_queue(checkout, a=CHANGE)
    jdk_source.apply(checkout, tree)
    assert not (tree / "dir" / "new.txt").exists()


def test_a_patch_that_does_not_fit_is_told(checkout, tree):
    put_queue(checkout, a=CHANGE.replace("-two", "-deux"))
    with pytest.raises(TerraceError, match="patch failed"):
        jdk_source.apply(checkout, tree)
    assert (tree / "dir" / "numbers.txt").read_text() == ORIGINAL


# The source.


def put_source(checkout, content):
    text = SOURCE % (len(content), hashlib.sha256(content).hexdigest())
    (jdk_source.integration(checkout) / "source.txt").write_text(text)
    return jdk_source.read_source(checkout)


class Server(http.server.BaseHTTPRequestHandler):
    """Serves `content`, from where it is asked to."""

    content = b""
    asked: tuple[str, ...] = ()

    def do_GET(self):
        wanted = self.headers.get("Range", "")
        type(self).asked = (*self.asked, wanted)
        first = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted else 0
        self.send_response(206 if wanted else 200)
        self.end_headers()
        self.wfile.write(self.content[first:])

    def log_message(self, *_):
        pass


def test_a_download_goes_on_where_it_was_cut_off(checkout, monkeypatch):
    Server.content, Server.asked = bytes(range(256)) * 10, ()
    source = put_source(checkout, Server.content)
    with http.server.HTTPServer(("127.0.0.1", 0), Server) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("TERRACE_JDK_SOURCE", f"http://127.0.0.1:{server.server_port}/x")
        partial = jdk_source.work_directory(checkout) / "source.tar.partial"
        partial.parent.mkdir(parents=True)
        partial.write_bytes(Server.content[:100])
        archive = jdk_source.fetch(checkout, source)
        server.shutdown()
    assert Server.asked == ("bytes=100-",)
    assert archive.read_bytes() == Server.content
    assert not partial.exists()


def test_another_file_than_the_one_wanted_is_refused(checkout, monkeypatch, tmp_path):
    source = put_source(checkout, b"wanted")
    (tmp_path / "other").write_bytes(b"other!")
    monkeypatch.setenv("TERRACE_JDK_SOURCE", str(tmp_path / "other"))
    with pytest.raises(TerraceError, match="not the file it should be"):
        jdk_source.fetch(checkout, source)
    assert list(jdk_source.work_directory(checkout).iterdir()) == []


def test_a_source_that_can_not_be_had_is_told_with_the_way_out(checkout, monkeypatch):
    source = put_source(checkout, b"wanted")
    monkeypatch.setenv("TERRACE_JDK_SOURCE", "/nosuch")
    with pytest.raises(TerraceError, match="TERRACE_JDK_SOURCE names another"):
        jdk_source.fetch(checkout, source)


# The JDK that is copied.


def put_jdk(directory, version, compiler=True):
    (directory / "bin").mkdir(parents=True)
    (directory / "release").write_text(f'OTHER="x"\nJAVA_RUNTIME_VERSION="{version}"\n')
    if compiler:
        (directory / "bin" / "javac").touch()
    return directory


@pytest.mark.parametrize(
    ("version", "compiler", "good"),
    [
        ("25.0.3+9-LTS", True, True),
        ("25.0.3+9", True, True),
        ("25.0.3+91", True, False),
        ("25.0.2+10-LTS", True, False),
        ("25.0.3+9-LTS", False, False),
    ],
)
def test_only_a_jdk_of_the_very_version_will_do(
    checkout, monkeypatch, tmp_path, version, compiler, good
):
    monkeypatch.setattr(installed, "_PLACES", (str(tmp_path / "jvm"),))
    monkeypatch.setenv("PATH", "/nosuch")
    made = put_jdk(tmp_path / "jvm" / "some", version, compiler)
    source = put_source(checkout, b"")
    if good:
        assert installed.find_jdk(source) == made
    else:
        with pytest.raises(TerraceError, match=r"a JDK 25\.0\.3\+9 is needed"):
            installed.find_jdk(source)


def test_java_home_comes_first(checkout, monkeypatch, tmp_path):
    monkeypatch.setattr(installed, "_PLACES", (str(tmp_path / "jvm"),))
    put_jdk(tmp_path / "jvm" / "some", "25.0.3+9")
    own = put_jdk(tmp_path / "own", "25.0.3+9")
    monkeypatch.setenv("JAVA_HOME", str(own))
    assert installed.find_jdk(put_source(checkout, b"")) == own


def test_the_time_left_follows_the_pace_of_this_build():
    assert jdk_build.time_left(100, 100, 900, 60) == ""
    assert jdk_build.time_left(200, 100, 900, 60) == "7 min left"
    assert jdk_build.time_left(890, 100, 900, 790) == "10 s left"


def test_a_disk_that_is_too_small_is_told_before_anything_is_done(checkout, monkeypatch):
    monkeypatch.setattr(jdk_build, "_space", lambda _: 0.5)
    with pytest.raises(TerraceError, match="TERRACE_JDK_DIR"):
        jdk_build.announce(checkout)


# The command.


def test_run_hands_its_words_to_java(checkout, monkeypatch):
    image = jdk_source.work_directory(checkout) / "jdk-release"
    image.mkdir(parents=True)
    (image / "terrace-complete").touch()
    seen = []
    monkeypatch.setattr(os, "execve", lambda *words: seen.append(words))
    jdk.run(checkout, "release", ["-jar", "app.jar"])
    program, words, _ = seen[0]
    assert program == str(image / "bin" / "java")
    assert words == [program, *jdk_session.HAB, "-jar", "app.jar"]


def test_run_without_words_is_refused(capsys):
    assert cli.main(["jdk", "run"]) == 2
    assert "usage: terrace jdk run -- JAVA ARGUMENTS" in capsys.readouterr().err


def test_the_command_line_of_each_action():
    options = parse(["jdk", "test", "--fastdebug", "--filter", "G1", "--filter", "flip"])
    assert (options.action, options.fastdebug, options.filter) == ("test", True, ["G1", "flip"])
    assert (options.suite, options.seconds, options.image) == ("all", 600, None)
    options = parse(["jdk", "run", "--", "-cp", "x", "--fastdebug"])
    assert (options.fastdebug, options.command) == (False, ["--", "-cp", "x", "--fastdebug"])


# A JVM without the queue.


def test_an_unpatched_jvm_knows_nothing_of_the_engine(checkout, tmp_path):
    words = jdk_build.configuration(checkout, tmp_path, None, jdk_build.UNPATCHED)
    assert "--with-debug-level=release" in words
    assert not any(word.startswith(("--with-extra", "--with-gtest")) for word in words)
    patched = jdk_build.configuration(checkout, tmp_path, tmp_path / "engine", "release")
    assert f"--with-extra-ldflags=-L{tmp_path / 'engine'} -Wl,--strip-debug" in patched
    same = {word for word in patched if not word.startswith(("--with-extra", "--with-version-opt"))}
    assert same <= set(words)


def test_an_unpatched_jvm_is_built_beside_the_patched_one(checkout, monkeypatch, tmp_path):
    put_source(checkout, b"source")
    done = []
    steps = {
        "find_jdk": lambda source: tmp_path / "installed",
        "unpack": lambda checkout, source, suffix="": tmp_path / f"tree{suffix}",
        "apply": lambda *_: pytest.fail("it is patched"),
        "_configure": lambda objects, tree, words: done.append(tree.name),
        "_make": lambda objects: done.append(objects.name),
        "_image": lambda checkout, jdk, tree, objects, image: done.append(image.name),
    }
    for name, step in steps.items():
        monkeypatch.setattr(jdk_build, name, step)
    image = jdk_build.build_jdk(checkout, jdk_build.UNPATCHED)
    assert image.name == "jdk-unpatched"
    assert done == ["tree.unpatched", "build-unpatched", "jdk-unpatched"]
    assert parse(["jdk", "build", "--unpatched"]).unpatched
