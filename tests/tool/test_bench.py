# SPDX-License-Identifier: MIT OR Apache-2.0
"""`terrace bench`: finding, listing and running drivers."""

import pytest
from terrace import bench, cli
from terrace.checkout import Checkout
from terrace.errors import TerraceError

DRIVER = '''"""Counts its arguments.

More.
"""
import helper


def main(argv: list[str]) -> int:
    return helper.count(argv)
'''


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    monkeypatch.setattr(bench, "prepare_programs", lambda _checkout: None)
    folder = tmp_path / "bench" / "micro"
    folder.mkdir(parents=True)
    (folder / "counting.py").write_text(DRIVER)
    (folder / "helper.py").write_text("def count(argv):\n    return len(argv)\n")
    (folder / "unfinished.py").write_text("def main(:\n")
    return Checkout(tmp_path)


def test_drivers_are_files_with_a_main(checkout):
    assert list(bench.find_drivers(checkout)) == ["counting"]


def test_the_list_shows_the_first_line_of_the_description(checkout, capsys):
    assert bench.list_drivers(checkout) == 0
    assert capsys.readouterr().out.split() == [
        "counting",
        "Counts",
        "its",
        "arguments.",
        "(bench/micro)",
    ]


def test_a_driver_gets_its_arguments_and_finds_its_neighbours(checkout):
    assert bench.run_driver(checkout, "counting", ["--a", "b"]) == 2


@pytest.mark.parametrize(("argument", "built"), [("--read", 0), ("--measure", 1)])
def test_a_driver_that_wants_nothing_built_is_believed(checkout, monkeypatch, argument, built):
    calls = []
    monkeypatch.setattr(bench, "prepare_programs", calls.append)
    text = "def needs_programs(argv):\n    return '--read' not in argv\n\n\ndef main(argv):\n    return 0\n"
    (checkout.root / "bench" / "micro" / "reading.py").write_text(text)
    assert bench.run_driver(checkout, "reading", [argument]) == 0
    assert len(calls) == built


def test_an_unknown_name_says_which_there_are(checkout):
    with pytest.raises(TerraceError, match="there are: counting"):
        bench.run_driver(checkout, "nonsense", [])


def test_an_unknown_name_is_refused_before_anything_is_installed(checkout, capsys, monkeypatch):
    def prepare(*_):
        raise AssertionError("installs")

    monkeypatch.setattr("terrace.prepare.prepare", prepare)
    monkeypatch.setattr("terrace.cli.find_checkout", lambda: checkout)
    assert cli.main(["bench", "nonsense"]) == 2
    assert capsys.readouterr().err == (
        "terrace: there is no benchmark nonsense; there are: counting\n"
    )


def test_a_driver_says_what_its_packages_are_for(checkout):
    path = checkout.root / "bench" / "micro" / "others.py"
    path.write_text('PURPOSES = ("users", "more")\n' + DRIVER)
    assert bench.purposes(path) == ("users", "more")
    assert bench.purposes(checkout.root / "bench" / "micro" / "counting.py") == ("bench",)
