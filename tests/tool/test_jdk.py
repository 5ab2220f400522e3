# SPDX-License-Identifier: MIT OR Apache-2.0
"""`terrace jdk`: the queue and its length, the source, the JDK that is copied, results that differ."""

import hashlib
import http.server
import importlib.util
import os
import shlex
import shutil
import subprocess
import threading

import pytest
from conftest import ROOT
from terrace import cli, jdk, jdk_build, jdk_source, jdk_test
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
    counts = [counter.changed(p.read_text()) for p in sorted((HOTSPOT / "patches").glob("*.diff"))]
    assert len(counts) >= 4
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


def touched_files():
    texts = [path.read_text() for path in jdk_source.queue(Checkout(ROOT))]
    return dict(pair for text in texts for pair in jdk_source.touched(text))


@pytest.fixture
def patched(tmp_path):
    """The files of the queue, patched as it is now; skipped where HotSpot's source is not there."""
    checkout = Checkout(ROOT)
    there = jdk_source.work_directory(checkout) / jdk_source.read_source(checkout).unpacked
    if not there.is_dir():
        pytest.skip("HotSpot's source is not there")
    originals = there.with_name(f"{there.name}.patched") / "originals"
    tree = tmp_path / "tree"
    for name, new in touched_files().items():
        if not new:
            kept = originals / name
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(kept if kept.exists() else there / name, tree / name)
    assert jdk_source.apply(checkout, tree) == len(touched_files())
    return tree


def test_the_queue_applies_to_the_source(patched):
    assert all((patched / name).is_file() for name in touched_files())


def test_the_changed_files_compile(patched):
    build = jdk_source.work_directory(Checkout(ROOT)) / "build-release"
    objects = build / "hotspot" / "variant-server" / "libjvm" / "objs"
    recorded = objects / "abstractCompiler.o.cmdline"
    if not recorded.exists():
        pytest.skip("libjvm has not been compiled")
    words = [w for w in shlex.split(recorded.read_text()) if not w.endswith(".cpp")]
    words = [w for w in words if w not in ("-c", "-MMD")]
    for option in ("-o", "-MF"):
        del words[words.index(option) : words.index(option) + 2]
    share = patched / "src" / "hotspot" / "share"
    for name in (n for n in touched_files() if n.endswith(".cpp")):
        command = [words[0], f"-I{share}", f"-I{ROOT / 'include'}", *words[1:], "-fsyntax-only"]
        done = subprocess.run([*command, str(patched / name)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


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
    monkeypatch.setattr(jdk_build, "_PLACES", (str(tmp_path / "jvm"),))
    monkeypatch.setenv("PATH", "/nosuch")
    made = put_jdk(tmp_path / "jvm" / "some", version, compiler)
    source = put_source(checkout, b"")
    if good:
        assert jdk_build.find_jdk(source) == made
    else:
        with pytest.raises(TerraceError, match=r"a JDK 25\.0\.3\+9 is needed"):
            jdk_build.find_jdk(source)


def test_java_home_comes_first(checkout, monkeypatch, tmp_path):
    monkeypatch.setattr(jdk_build, "_PLACES", (str(tmp_path / "jvm"),))
    put_jdk(tmp_path / "jvm" / "some", "25.0.3+9")
    own = put_jdk(tmp_path / "own", "25.0.3+9")
    monkeypatch.setenv("JAVA_HOME", str(own))
    assert jdk_build.find_jdk(put_source(checkout, b"")) == own


def test_the_time_left_follows_the_pace_of_this_build():
    assert jdk_build.time_left(100, 100, 900, 60) == ""
    assert jdk_build.time_left(200, 100, 900, 60) == "7 min left"
    assert jdk_build.time_left(890, 100, 900, 790) == "10 s left"


def test_a_disk_that_is_too_small_is_told_before_anything_is_done(checkout, monkeypatch):
    monkeypatch.setattr(jdk_build, "_space", lambda _: 0.5)
    with pytest.raises(TerraceError, match="TERRACE_JDK_DIR"):
        jdk_build.announce(checkout)


# Results.

JAVA = """#!/bin/sh
case "$*" in *UseHierarchicalAllocBuffers*) %s;; esac
echo 42
"""


def put_java(directory, with_buffers=":"):
    (directory / "bin").mkdir(parents=True)
    java = directory / "bin" / "java"
    java.write_text(JAVA % with_buffers)
    java.chmod(0o755)
    return directory


def run_test(checkout, monkeypatch, tmp_path, with_buffers):
    program = jdk_test.Program("program", ("Main",))
    monkeypatch.setattr(jdk_test, "programs", lambda *_: [program])
    stock, image = put_java(tmp_path / "stock"), put_java(tmp_path / "image", with_buffers)
    return jdk_test.test(checkout, stock, image, None)


def test_the_same_results_pass(checkout, monkeypatch, tmp_path, capsys):
    assert run_test(checkout, monkeypatch, tmp_path, ":") == 0
    runs = len(jdk_test.SETTINGS) * len(jdk_test.COLLECTORS)
    assert f"{runs} passed, 0 failed" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("with_buffers", "told"),
    [("echo 41; exit 0", "another result"), ("echo broken heap; exit 134", "exit status 134")],
)
def test_another_result_and_a_crash_fail(
    checkout, monkeypatch, tmp_path, capsys, with_buffers, told
):
    assert run_test(checkout, monkeypatch, tmp_path, with_buffers) == 1
    out = capsys.readouterr().out
    off = sum(setting.patched == () for setting in jdk_test.SETTINGS)
    assert f"{len(jdk_test.COLLECTORS) * off} passed" in out  # those without the buffers
    assert told in out


def test_files_are_part_of_a_result(tmp_path):
    output = tmp_path / "out"
    image = put_java(tmp_path / "image", f"echo $$ > {output}/x")  # another one in each run
    program = jdk_test.Program("program", (), output)
    assert jdk_test.run_once(image, jdk_test.HAB, program) != jdk_test.run_once(
        image, jdk_test.HAB, program
    )
    assert jdk_test.run_once(image, (), program) == jdk_test.run_once(image, (), program)


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
    assert words == [program, *jdk_test.HAB, "-jar", "app.jar"]


def test_run_without_words_is_refused(capsys):
    assert cli.main(["jdk", "run"]) == 2
    assert "usage: terrace jdk run -- JAVA ARGUMENTS" in capsys.readouterr().err


def test_the_command_line_of_each_action():
    options = cli.parse(["jdk", "test", "--fastdebug", "--filter", "G1"])
    assert (options.action, options.fastdebug, options.filter) == ("test", True, "G1")
    options = cli.parse(["jdk", "run", "--", "-cp", "x", "--fastdebug"])
    assert (options.fastdebug, options.command) == (False, ["--", "-cp", "x", "--fastdebug"])
