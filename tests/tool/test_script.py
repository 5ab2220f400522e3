# SPDX-License-Identifier: MIT OR Apache-2.0
"""The `terrace` script at the root: which Python it starts, and what it does without one."""

import os
import shutil
import subprocess

import pytest

from conftest import ROOT

APT_GET = """#!/bin/sh
echo "$@" >> {log}/log
[ -e {log}/offline ] && exit 1
if [ $1 = install ]; then
  printf '%s\\n' '#!/bin/sh' 'echo fake "$@"' > {programs}/python3
  chmod +x {programs}/python3
fi
exit 0
"""

SHOW = '#!/bin/sh\necho "$0" "$@"\n'


@pytest.fixture
def root(tmp_path):
    """A checkout of nothing but what the script touches."""
    root = tmp_path / "root"
    (root / "tools" / "terrace").mkdir(parents=True)
    shutil.copy(ROOT / "terrace", root / "terrace")
    shutil.copy(ROOT / "tools" / "terrace" / "packages.txt", root / "tools" / "terrace")
    (root / "tools" / "terrace" / "__main__.py").touch()
    return root


def give_environment(root):
    python = root / "build" / ".venv" / "bin" / "python3"
    python.parent.mkdir(parents=True)
    python.write_text(SHOW)
    python.chmod(0o755)


def run(*command, **options):
    return subprocess.run(
        [*map(str, command)], capture_output=True, text=True, check=False, **options
    )


def test_the_environments_python_is_started_isolated_with_all_arguments(root):
    give_environment(root)
    out = run(root / "terrace", "run", "--", "a b", "", cwd="/").stdout
    assert (
        out == f"{root}/build/.venv/bin/python3 -I {root}/tools/terrace/__main__.py run -- a b \n"
    )


def test_symbolic_links_to_the_script_work(root, tmp_path):
    give_environment(root)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "absolute").symlink_to(root / "terrace")
    (tmp_path / "bin" / "relative").symlink_to("../root/terrace")
    for name in ("absolute", "relative"):
        out = run(tmp_path / "bin" / name, "x").stdout
        assert out.split()[0].endswith("root/build/.venv/bin/python3")
        assert "root/tools/terrace/__main__.py x" in out


def test_it_works_from_inside_the_checkout(root):
    give_environment(root)
    for command in (["./terrace"], ["sh", "terrace"]):
        assert run(*command, "x", cwd=root).stdout == (
            "./build/.venv/bin/python3 -I ./tools/terrace/__main__.py x\n"
        )


@pytest.fixture
def no_python(root, tmp_path):
    """The script with a $PATH without Python, root's rights and a fake apt-get."""
    text = (root / "terrace").read_text().replace("/usr/bin/python3 python3", "python3")
    (root / "terrace").write_text(text)
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("sh", "sed", "tr", "readlink", "cat", "chmod"):
        (programs / name).symlink_to(shutil.which(name))
    (programs / "id").write_text("#!/bin/sh\necho 0\n")
    (programs / "apt-get").write_text(APT_GET.format(log=tmp_path, programs=programs))
    for name in ("id", "apt-get"):
        (programs / name).chmod(0o755)
    return {**os.environ, "PATH": str(programs)}


def test_without_python_it_says_what_it_installs_and_goes_on(root, tmp_path, no_python):
    done = run(root / "terrace", "doctor", env=no_python)
    assert (
        "installing these distribution packages with apt-get: python3 python3-venv" in done.stderr
    )
    assert done.stdout == f"fake -I {root}/tools/terrace/__main__.py doctor\n"
    assert "install" in (tmp_path / "log").read_text()


def test_without_python_and_network_it_says_what_is_missing(root, tmp_path, no_python):
    (tmp_path / "offline").touch()
    done = run(root / "terrace", "doctor", env=no_python)
    assert done.returncode == 1
    assert (
        "no Python 3.10 or newer could be installed (packages: python3 python3-venv" in done.stderr
    )


def test_without_python_root_and_sudo_it_says_what_is_missing(root, tmp_path, no_python):
    (tmp_path / "bin" / "id").write_text("#!/bin/sh\necho 1000\n")
    done = run(root / "terrace", "doctor", env=no_python)
    assert done.returncode == 1
    assert "Please install: python3 python3-venv" in done.stderr
