# SPDX-License-Identifier: MIT OR Apache-2.0
"""`terrace test --changed`: which paths count as changed, and which tests follow from them."""

import re
import subprocess
from pathlib import Path

import pytest
from terrace import changed, testing
from terrace.checkout import Checkout

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("path", "preset", "test", "target"),
    [
        ("docs/guide/options.md", "dev", "layers.documentation", None),
        ("src/arch/x86_64/pop.h", "inject", "inject.mutant_no_abort_is_found", "tests/inject/all"),
        ("src/heap/slabs/slabs.cpp", "dev", "unit.WasteTest.a_thread", "tests/unit/all"),
        ("include/terrace/lab.h", "dev", "lab.Ranges.past", "tests/lab/all"),
        ("src/shim/umem/cache.cpp", "dev", "libumem.api_on_cpu_id", "tests/libumem/all"),
        ("src/shim/malloc.cpp", "dev", "api.thread.none", "tests/api/all"),
        ("tests/misuse/cases.py", "dev", "misuse.check.mm_cid", "tests/misuse/all"),
        ("tests/env/limits.py", "release", "env.fork_beside_stdio", None),
        ("tests/tool/test_stats.py", "dev", "tool.stats", None),
        ("tests/tool/test_debug_umem_end_to_end.py", "release", "tool.debug_umem_end_to_end", None),
        ("tools/terrace/stats.py", "dev", "tool.stats", None),
        ("tools/terrace/jdk/build.py", "dev", "tool.jdk", None),
        ("bench/compare/tables.py", "dev", "compare.tables", None),
        ("CMakeLists.txt", "dev", "layers.edges", None),
    ],
)
def test_a_path_chooses_tests_of_one_preset(path, preset, test, target):
    choices = changed.choose([path])
    assert list(choices) == [preset]
    assert any(re.search(pattern, test) for pattern in choices[preset].tests)
    assert choices[preset].targets[:1] == ((target,) if target else ())


def test_two_paths_with_the_same_rule_are_one_choice():
    assert changed.choose(["src/heap/a.cpp", "src/span/b.h"]) == changed.choose(["src/heap/a.cpp"])


def test_presets_keep_their_order():
    assert list(changed.choose(["README.md", "tests/env/cases.py", "src/arch/cpu.h"])) == [
        "release",
        "dev",
        "inject",
    ]


@pytest.mark.parametrize("rule", [r for r in changed.RULES if r.paths], ids=lambda r: r.paths)
def test_no_rule_is_for_paths_that_are_gone(rule):
    command = ["git", "ls-files"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip("no checkout of git")
    assert any(re.match(rule.paths, path) for path in done.stdout.splitlines())


@pytest.fixture
def repository(tmp_path):
    def git(*words):
        who = ("-c", "user.name=a", "-c", "user.email=a@b")
        subprocess.run(["git", *who, *words], cwd=tmp_path, check=True, capture_output=True)

    git("init", "-q", "-b", "main")
    (tmp_path / "old.md").write_text("1")
    git("add", ".")
    git("commit", "-q", "-m", "first")
    git("checkout", "-q", "-b", "branch")
    return tmp_path, git


def test_what_is_committed_edited_or_new_has_changed(repository):
    root, git = repository
    assert changed.changed_paths(root) == []
    (root / "committed.md").write_text("2")
    git("add", ".")
    git("commit", "-q", "-m", "second")
    (root / "old.md").write_text("3")
    (root / "new.md").write_text("4")
    assert changed.changed_paths(root) == ["committed.md", "new.md", "old.md"]


def test_nothing_changed_is_success(repository, capsys):
    assert changed.run_changed(Checkout(repository[0])) == 0
    assert "nothing differs from main" in capsys.readouterr().err


def test_only_the_chosen_targets_are_built(repository, monkeypatch, capsys):
    root, _ = repository
    (root / "src/vmem").mkdir(parents=True)
    (root / "src/vmem/fit.cpp").write_text("")
    built = []
    monkeypatch.setattr("terrace.build.configure", lambda *_: None)
    monkeypatch.setattr(
        "terrace.build.compile_targets", lambda _checkout, *words: built.append(words)
    )

    def ctest(_checkout, _preset, choice, result):
        assert choice == ["--tests-regex", r"^vmem\."]
        result.passed += 1

    monkeypatch.setattr(testing, "_run_ctest", ctest)
    assert changed.run_changed(Checkout(root)) == 0
    assert built == [("dev", ("tests/vmem/all",))]
    assert capsys.readouterr().out.endswith("\n1 passed, 0 failed, 1 skipped\n")
