# SPDX-License-Identifier: MIT OR Apache-2.0
"""Completion and manual pages, made of the parser and the headers as packages have them."""

import os
import shutil
import subprocess

import pytest
from conftest import ROOT
from terrace.package.making import Source

pytest.importorskip("shtab")
pytest.importorskip("argparse_manpage")


@pytest.fixture(scope="module")
def source():
    return Source(ROOT, ROOT / "build" / "release")


@pytest.fixture(scope="module")
def scripts(tmp_path_factory):
    from terrace.package import completion

    share = tmp_path_factory.mktemp("share")
    completion.write(share)
    return {shell: share / place for shell, place in completion.PLACES.items()}


@pytest.fixture(scope="module")
def manual(source, tmp_path_factory):
    from terrace.package import manual

    if not shutil.which("pandoc"):
        pytest.skip("no pandoc")
    os.environ.setdefault("SOURCE_DATE_EPOCH", "1700000000")
    share = tmp_path_factory.mktemp("share")
    manual.write(source, share)
    return share / "man"


# What readline does at the tab key, with the function that `complete` was given.
BASH = """
source "$0"
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE="$*" COMP_POINT=${#COMP_LINE}
read -r -a registered < <(complete -p terrace)
for ((i = 0; i < ${#registered[@]}; i++)); do [ "${registered[i]}" = -F ] && function=${registered[i + 1]}; done
"$function" terrace "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
printf '%s\\n' "${COMPREPLY[@]}"
"""


def bash(script, *words, cwd=None):
    command = ["bash", "--norc", "-c", BASH, str(script), "terrace", *words]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=60, check=False)
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "completions"),
    [
        (("fi",), ["findleaks"]),
        (("um",), ["umastat", "umausers", "umem"]),
        (("run", "--lib"), ["--library"]),
        (("run", "--library", ""), ["hardened", "umem"]),
        (("run", "--json", "ab"), ["abcd"]),
    ],
)
def test_bash_completes(scripts, tmp_path, words, completions):
    (tmp_path / "abcd").touch()
    assert bash(scripts["bash"], *words, cwd=tmp_path) == completions


def test_fish_completes(scripts):
    if not shutil.which("fish"):
        pytest.skip("no fish")
    command = ["fish", "-c", 'source $argv[1]; complete -C "terrace findl"', scripts["fish"]]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.startswith("findleaks\t"), done


def test_zsh_reads_its_script(scripts):
    if not shutil.which("zsh"):
        pytest.skip("no zsh")
    load = "fpath+=($0); autoload -Uz compinit; compinit -u -D; print $_comps[terrace]; autoload +X _terrace"
    command = ["zsh", "-f", "-c", load, str(scripts["zsh"].parent)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout.strip(), done.stderr) == ("_terrace", "")


def test_man_has_no_warning(manual):
    if not shutil.which("man"):
        pytest.skip("no man")
    environment = {**os.environ, "MANWIDTH": "80", "LC_ALL": "C.UTF-8", "MAN_KEEP_STDERR": "1"}
    pages = sorted(path for path in manual.glob("man?/*") if not path.is_symlink())
    assert len(pages) == 7
    for page in pages:
        done = subprocess.run(
            ["man", "-l", "--warnings", str(page)],
            env=environment, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, ""), page
        assert "NAME\n" in done.stdout


def test_each_public_function_has_a_page(manual):
    names = {path.name for path in (manual / "man3").iterdir()}
    for name in ("terrace_malloc", "umem_cache_create", "umem_alloc", "vmem_create", "vmem_xalloc"):
        assert f"{name}.3" in names
    assert all(path.exists() for path in (manual / "man3").iterdir())
    assert "--library" in (manual / "man1" / "terrace.1").read_text().replace("\\-", "-")
