# SPDX-License-Identifier: MIT OR Apache-2.0
"""The list of packages, what is missing, and installing with a fake apt-get."""

import os
import shutil

import pytest
from terrace import packages
from terrace.errors import TerraceError
from terrace.packages import Package


@pytest.fixture
def path(tmp_path, monkeypatch):
    """A $PATH of our own with the few real programs that fakes need."""
    directory = tmp_path / "bin"
    directory.mkdir()
    for name in ("env", "sh", "cat", "chmod"):
        (directory / name).symlink_to(shutil.which(name))
    monkeypatch.setenv("PATH", str(directory))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    return directory


@pytest.fixture
def note(tmp_path):
    """Where names are kept that the distribution does not offer."""
    return tmp_path / "not-offered.txt"


def put(directory, name: str, text: str) -> None:
    (directory / name).write_text("#!/bin/sh\n" + text)
    (directory / name).chmod(0o755)


def put_apt(directory, offers: dict[str, str], creates: str = "") -> None:
    """apt-get notes its arguments and makes programs appear; apt-cache answers with the offers."""
    put(
        directory,
        "apt-get",
        f'echo "$@" >> {directory}/log\ncase $* in *install*) {creates or ":"} ;; esac\n',
    )
    lines = "".join(f"{n}:\n  Installed: (none)\n  Candidate: {v}\n" for n, v in offers.items())
    put(directory, "apt-cache", f"cat <<'END'\n{lines}END\n")


def use(monkeypatch, *listed: Package) -> None:
    monkeypatch.setattr(packages, "read_packages", lambda: list(listed))


def test_every_line_of_the_list_can_be_evaluated():
    listed = packages.read_packages()
    assert {"python", "build", "test", "bench"} <= {p.purpose for p in listed}
    for package in listed:
        packages.is_present(package)


@pytest.mark.parametrize(
    ("text", "version"),
    [("cmake version 3.25.1\n", (3, 25, 1)), ("3.25.1-1", (3, 25, 1)), ("12", (12,)), ("", ())],
)
def test_versions_are_read_from_what_programs_say(text, version):
    assert packages.parse_version(text) == version


def test_a_program_that_is_too_old_counts_as_missing(path):
    package = Package("build", "cmake", "command:cmake>=3.25", "pip:cmake")
    assert not packages.is_present(package)
    put(path, "cmake", "echo cmake version 3.22.1\n")
    assert not packages.is_present(package)
    put(path, "cmake", "echo cmake version 3.31.0\n")
    assert packages.is_present(package)


@pytest.mark.usefixtures("path")
def test_only_packages_for_the_purposes_are_wanted_and_each_once(monkeypatch):
    use(
        monkeypatch,
        Package("build", "g++", "command:c++"),
        Package("test", "spin", "command:spin"),
        Package("test", "g++", "command:c++"),
    )
    assert [p.name for p in packages.missing_packages(("build",))] == ["g++"]
    assert [p.name for p in packages.missing_packages(("build", "test"))] == ["g++", "spin"]


def test_says_what_it_installs_and_installs_only_that(note, path, monkeypatch, capsys):
    use(
        monkeypatch,
        Package("build", "ninja-build", "command:ninja"),
        Package("build", "sh", "command:sh"),
    )
    put_apt(
        path, {"ninja-build": "1.11.1-2"}, f"echo '#!/bin/sh' > {path}/ninja; chmod +x {path}/ninja"
    )
    assert packages.install(("build",), note) == ()
    assert "installing with apt-get: ninja-build\n" in capsys.readouterr().err
    assert (path / "log").read_text().splitlines()[-1].endswith(" ninja-build")


def test_nothing_is_run_when_nothing_is_missing(note, path, monkeypatch):
    use(monkeypatch, Package("build", "sh", "command:sh"))
    put_apt(path, {})
    packages.install(("build",), note)
    assert not (path / "log").exists()


def test_a_version_that_is_too_old_is_not_installed_its_extra_stands_in(note, path, monkeypatch):
    use(monkeypatch, Package("build", "cmake", "command:cmake>=3.25", "pip:cmake"))
    put_apt(path, {"cmake": "3.22.1-1ubuntu1.22.04.2"})
    assert packages.install(("build",), note) == ("cmake",)
    assert "install" not in (path / "log").read_text()
    assert packages.install(("build",), note, frozenset({"cmake"})) == ()


@pytest.mark.usefixtures("path")
def test_what_is_essential_and_can_not_be_had_is_an_error(note, monkeypatch):
    use(monkeypatch, Package("build", "g++", "command:c++"))
    with pytest.raises(TerraceError, match=r"nothing can be built without: g\+\+"):
        packages.install(("build",), note)


def test_what_only_tests_need_is_left_out_with_a_word(note, path, monkeypatch, capsys):
    use(monkeypatch, Package("test", "spin", "command:spin"))
    put_apt(path, {})
    assert packages.install(("test",), note) == ()
    assert "going on without: spin" in capsys.readouterr().err


def test_without_root_and_sudo_the_command_to_type_is_shown(note, path, monkeypatch, capsys):
    use(monkeypatch, Package("build", "g++", "command:c++"))
    put_apt(path, {"g++": "12"})
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(TerraceError, match=r"Please run as root: apt-get install g\+\+$"):
        packages.install(("build",), note)
    assert capsys.readouterr().err == ""
    assert not (path / "log").exists()


def test_what_is_not_offered_is_not_looked_for_again(path, note, monkeypatch):
    use(monkeypatch, Package("test", "spin", "command:spin"))
    put_apt(path, {})
    packages.install(("test",), note)
    asked = (path / "log").read_text()
    packages.install(("test",), note)
    assert (path / "log").read_text() == asked


def test_when_all_together_fails_the_essential_ones_are_tried_alone(path, note, monkeypatch):
    use(
        monkeypatch,
        Package("build", "g++", "command:c++"),
        Package("test", "spin", "command:spin"),
    )
    put_apt(
        path,
        {"g++": "12", "spin": "6"},
        f"case $* in *spin*) exit 1 ;; esac; echo > {path}/c++; chmod +x {path}/c++",
    )
    assert packages.install(("build", "test"), note) == ()
    assert packages.missing_packages(("build",)) == []


def test_all_that_is_said_about_what_is_missing_names_the_same(note, path, monkeypatch, capsys):
    use(
        monkeypatch,
        Package("python", "python3-venv", "module:no_such_module"),
        Package("build", "g++", "command:c++"),
        Package("build", "cmake", "command:cmake", "pip:cmake"),
        Package("bench", "libnew3|libold2", "file:/no/such/file"),
    )
    put_apt(path, {})
    with pytest.raises(TerraceError) as error:
        packages.install(("python", "build", "bench"), note)
    assert str(error.value).splitlines() == [
        "missing, and nothing can be built without: g++",
        "Please run as root: apt-get install g++",
    ]
    assert "missing" not in capsys.readouterr().err
    put(path, "c++", "")
    assert packages.install(("python", "build", "bench"), note) == ("cmake",)
    assert capsys.readouterr().err == "terrace: going on without: python3-venv libnew3\n"


@pytest.mark.parametrize(("offered", "chosen"), [("libold2", "libold2"), ("libnew3", "libnew3")])
def test_a_renamed_package_is_installed_by_the_name_that_is_offered(
    path, note, monkeypatch, offered, chosen
):
    use(monkeypatch, Package("bench", "libnew3|libold2", "file:/no/such/file"))
    put_apt(path, {offered: "3.0"})
    packages.install(("bench",), note)
    assert (path / "log").read_text().splitlines()[-1].endswith(f" {chosen}")


def test_mimalloc_and_tcmalloc_are_known_by_the_names_of_debian_12_and_13():
    names = [p.names for p in packages.read_packages() if p.purpose == "bench"]
    assert ["libmimalloc3", "libmimalloc2.0"] in names
    assert ["libtcmalloc-minimal4t64", "libtcmalloc-minimal4"] in names


def test_the_progress_of_an_installation_comes_to_its_end(path, note, monkeypatch, capsys):
    use(monkeypatch, Package("test", "spin", "command:spin"))
    put_apt(path, {"spin": "6"}, "echo pmstatus:spin:97.5:Configuring >&3")
    packages.install(("test",), note)
    assert "installing distribution packages: 100 %" in capsys.readouterr().err
