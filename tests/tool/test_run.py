# SPDX-License-Identifier: MIT OR Apache-2.0
"""`terrace run` with a stand-in for the library: what passes through, what is reported."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from terrace import launch, run
from terrace.report import silence

from conftest import COLUMNS, MAIN, harmless_library, make_statistics

# A program that leaves the statistics that the library would.
WRITES = """#!{python}
import os, sys
path = os.environ["TERRACE_STATS_FILE"].replace("%p", str(os.getpid()))
open(path, "w").write({text!r}.replace("4711", str(os.getpid())))
{rest}
"""


@pytest.fixture
def program(script):
    def write(rest: str = "", name: str = "program"):
        text = json.dumps(make_statistics(4711))
        return str(script(name, WRITES.format(python=sys.executable, text=text, rest=rest)))

    return write


def test_ends_with_the_table_on_stderr(terrace, program):
    done = terrace("run", "--", program("print('hello')"))
    assert done.stdout == "hello\n"
    assert "What each level of Terrace did in fake" in done.stderr
    assert "rung mm_cid; 4 slots" in done.stderr
    assert "By size class" not in done.stderr


def test_stats_adds_the_size_classes(terrace, program):
    assert "By size class" in terrace("run", "--stats", "--", program()).stderr


def test_json_writes_the_sum_and_prints_nothing(terrace, program, tmp_path):
    child = program(name="child")
    done = terrace("run", "--json", str(tmp_path / "o"), "--", program(f"os.system({child!r})"))
    assert done.stderr == ""
    total = json.loads((tmp_path / "o").read_text())
    assert total["processes"] == 2
    assert total["levels"][0]["values"]["allocations"] == 2000


def test_quiet_prints_nothing(terrace, script):
    done = terrace("run", "--quiet", "--", str(script("p", "#!/bin/sh\necho out; exit 3\n")))
    assert (done.stdout, done.stderr, done.returncode) == ("out\n", "", 3)


def test_the_directory_of_the_statistics_is_removed(terrace, program, tmp_path):
    terrace("run", "--", program())
    assert not list(tmp_path.glob("terrace-*"))


def test_options_after_the_program_are_the_programs(terrace):
    done = terrace("run", "--quiet", "--", "printf", "%s.", "--json", "-x", "--")
    assert done.stdout == "--json.-x.--."


def test_the_two_dashes_may_be_left_out(terrace):
    assert terrace("run", "--quiet", "echo", "-n", "a").stdout == "a"


def test_without_a_program_the_usage_is_shown(terrace):
    done = terrace("run", "--quiet", "--")
    assert done.returncode == 2
    assert "usage" in done.stderr


def test_an_unknown_option_shows_the_usage_of_run(terrace):
    done = terrace("run", "--nosuch", "--", "true")
    assert done.returncode == 2
    assert done.stderr.startswith("usage: terrace run [--stats | --json FILE | --quiet] [--library")
    assert done.stderr.splitlines()[-1] == "terrace run: error: unrecognized arguments: --nosuch"


def test_input_passes_through(terrace):
    assert terrace("run", "--quiet", "--", "cat", input="abc").stdout == "abc"


def test_the_exit_status_passes_through(terrace, program):
    assert terrace("run", "--", program("sys.exit(37)")).returncode == 37


def test_a_deadly_signal_passes_through(terrace, program):
    done = terrace("run", "--", program("sys.stdout.flush(); os.kill(os.getpid(), 15)"))
    assert done.returncode == -15


def test_a_program_that_is_not_found_is_127(terrace):
    done = terrace("run", "--", "no-such-program-here")
    assert done.returncode == 127
    assert done.stderr == "terrace: no-such-program-here: not found on the PATH\n"


def test_a_path_that_does_not_exist_is_127(terrace, tmp_path):
    assert terrace("run", "--", str(tmp_path / "x")).returncode == 127


def test_a_missing_interpreter_is_named_as_the_reason(terrace, script):
    done = terrace("run", "--", str(script("p", "#!/no/such/interpreter\n")))
    assert done.returncode == 127
    assert "interpreter is missing" in done.stderr


def test_a_file_that_may_not_be_executed_is_126(terrace, tmp_path):
    (tmp_path / "data").write_text("x")
    assert terrace("run", "--", str(tmp_path / "data")).returncode == 126


def test_a_script_without_an_interpreter_line_is_run_by_sh(terrace, script):
    done = terrace("run", "--quiet", "--", str(script("p", "echo $1\n")), "argument")
    assert done.stdout == "argument\n"


def test_a_program_without_statistics_is_explained_in_one_line(terrace):
    done = terrace("run", "--", sys.executable, "-c", "import os; os._exit(5)")
    assert done.returncode == 5
    assert done.stderr.startswith(f"terrace: no statistics: {sys.executable} left none; they are ")
    assert done.stderr.count("\n") == 1


def test_a_shell_that_ends_with__exit_is_named(terrace, script):
    shell = silence.executed_file("sh")
    if os.path.basename(shell) != "dash":
        pytest.skip("sh is not dash")
    done = terrace("run", "--", "sh", "-c", "exit 7")
    assert done.returncode == 7
    assert done.stderr.startswith("terrace: no statistics: sh is dash, which ran on Terrace but ")
    through = str(script("p", "#!/bin/sh\nexit 7\n"))
    assert f"{through} is dash, " in terrace("run", "--", through).stderr


def elf(path: Path, bits: int) -> str:
    """An ELF header with no program header, so none that asks for an interpreter."""
    head = bytearray(64)
    head[:6] = b"\x7fELF" + bytes((bits // 32, 1))
    head[54] = 56
    path.write_bytes(head)
    return str(path)


def test_a_32_bit_program_is_told_from_one_that_calls__exit(tmp_path):
    reason = silence.why_no_statistics(elf(tmp_path / "old", 32), launch.Ending(1))
    assert "is a 32-bit program; Terrace is built for 64 bits and was not loaded" in reason


def test_what_is_behind_a_script_is_looked_at(tmp_path, script):
    elf(tmp_path / "static", 64)
    inner = script("inner", f"#!{tmp_path}/static\n")
    outer = str(script("outer", f"#! /usr/bin/env {inner}\n"))
    reason = silence.why_no_statistics(outer, launch.Ending(1))
    assert reason == f"{outer} is statically linked, nothing can be preloaded into it"


def test_a_killed_program_without_statistics_is_explained(terrace):
    done = terrace("run", "--", "sh", "-c", "kill -KILL $$")
    assert done.returncode == -9
    assert "killed by SIGKILL" in done.stderr


def test_json_is_written_for_a_program_without_statistics_too(terrace, tmp_path):
    terrace("run", "--json", str(tmp_path / "o"), "--", "sh", "-c", "exit 5")
    assert json.loads((tmp_path / "o").read_text())["processes"] == 0


def test_a_report_that_can_not_be_written_is_said_before_the_program_runs(terrace):
    done = terrace("run", "--json", "/no/such/directory/o", "--", "echo", "ran")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "terrace: --json /no/such/directory/o: No such file or directory\n"


@pytest.mark.parametrize("status", [0, 9])
def test_the_programs_status_stays_when_the_report_can_not_be_written_any_more(
    terrace, program, tmp_path, status
):
    folder = tmp_path / "folder"
    folder.mkdir()
    rest = f"import shutil; shutil.rmtree({str(folder)!r}); sys.exit({status})"
    done = terrace("run", "--json", str(folder / "o"), "--", program(rest))
    assert done.returncode == status
    assert "No such file or directory" in done.stderr


def test_a_report_into_a_pipe_waits_for_its_reader_only_at_the_end(terrace, program, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with subprocess.Popen(["cat", tmp_path / "pipe"], stdout=subprocess.PIPE) as reader:
        terrace("run", "--json", str(tmp_path / "pipe"), "--", program())
        assert json.loads(reader.communicate(timeout=20)[0])["processes"] == 1


@pytest.mark.parametrize("quiet", [("--quiet",), ()])
def test_a_library_in_a_path_with_a_space_is_preloaded(terrace, tmp_path, quiet):
    folder = tmp_path / "a folder: mine"
    folder.mkdir()
    library = folder / "libterrace.so"
    library.write_bytes(Path(harmless_library()).read_bytes())
    show = (
        "import os; print(os.path.realpath(os.environ['LD_PRELOAD'])); "
        "print(open('/proc/self/maps').read())"
    )
    done = terrace(
        "run", *quiet, "--", sys.executable, "-c", show, env={"TERRACE_LIBRARY": str(library)}
    )
    first, _, maps = done.stdout.partition("\n")
    assert first == str(library)
    assert str(library) in maps
    assert "ld.so" not in done.stderr
    assert not list(Path("/tmp").glob(f"terrace-*/{library.name}"))


def test_the_environment_is_the_callers_plus_two_variables(terrace):
    # In the C locale Python sets LC_CTYPE for itself; the program must not see that.
    given = {"LANG": "C", "LC_ALL": "", "A": "1", "PYTHONPATH": "/nowhere"}
    done = terrace("run", "--", "env", env=given)
    seen = dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)
    expected = {**os.environ, **given}
    changed = {"LD_PRELOAD", "TERRACE_STATS_FILE", "TERRACE_LIBRARY", "TMPDIR", "_"}
    assert {k: v for k, v in seen.items() if k not in changed} == {
        k: v for k, v in expected.items() if k not in changed and "\n" not in v
    }
    assert seen["TERRACE_STATS_FILE"].endswith("/%p")


def test_what_was_preloaded_before_stays_behind_the_library(monkeypatch):
    monkeypatch.setattr(launch, "original_environment", lambda: {b"LD_PRELOAD": b"/a.so:/b.so"})
    assert run.preload_environment("/t.so", "/x/%p")[b"LD_PRELOAD"] == b"/t.so:/a.so:/b.so"


def test_a_closed_stderr_does_no_harm(program, terrace):
    shell = f'exec "{sys.executable}" -I "$0" run -- "$1" 2>&-'
    main = str(Path(run.__file__).with_name("__main__.py"))
    done = terrace("run", "--quiet", "--", "sh", "-c", shell, main, program("print('out')"))
    assert (done.returncode, done.stdout) == (0, "out\n")


def test_static_programs_are_recognised(tmp_path):
    assert not silence.is_static(os.path.realpath(sys.executable))
    assert not silence.is_static(__file__)
    assert silence.is_static(elf(tmp_path / "static", 64))


def test_without_rich_the_table_is_plain(program, tmp_path):
    """-I and -S: no package but Python's own."""
    environment = {
        **os.environ,
        "TERRACE_LIBRARY": harmless_library(),
        "TMPDIR": str(tmp_path),
    }
    done = subprocess.run(
        [os.path.realpath(sys.executable), "-IS", str(MAIN), "run", "--stats", "--", program()],
        env=environment, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    lines = done.stderr.splitlines()
    assert (done.returncode, lines[0]) == (0, "What each level of Terrace did in fake")
    assert lines[1].split() == ["level", *(c["title"] for c in COLUMNS)]
    assert lines[2].split()[:4] == ["core", "1,000", "900", "9"]
    assert lines[3].split()[:3] == ["global", "120", "0"]
    assert len({len(line) for line in lines[1:4]}) == 1
    assert "rung mm_cid; 4 slots" in done.stderr
    assert "16 B" in done.stderr.partition("By size class")[2]
