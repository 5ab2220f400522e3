# SPDX-License-Identifier: MIT OR Apache-2.0
"""`terrace docs`: the site of this checkout is whole; of another one each fault is reported."""

import json
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT
from terrace import docs
from terrace.checkout import Checkout

pytest.importorskip("mkdocs", reason="mkdocs is not there: it is in tools/requirements/docs.txt")
pytest.importorskip("material", reason="mkdocs-material is not there")

README = """# The project

[A heading](docs/page.md#what-it-does), [a source](src/code.cpp), [a folder](src).
![A plot](docs/plot.svg)
A list without an empty line before it:
- one
- two
<!-- docs/page.md: 1 = "a comment" -->
"""


@pytest.fixture
def made(tmp_path):
    """A checkout with the looks and hooks of this one, and pages of its own."""
    files = {
        "README.md": README,
        "docs/page.md": "# A page\n\n## What it does\n\n[Back](../README.md).\n",
        "docs/plot.svg": '<svg xmlns="http://www.w3.org/2000/svg"/>',
        "src/code.cpp": "int answer = 42;\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    configure(tmp_path, "nav: [README.md, docs/page.md]\n")
    return Checkout(tmp_path)


def configure(folder: Path, more: str) -> None:
    path = folder / docs.CONFIG
    path.parent.mkdir(parents=True)
    hooks = ROOT / "tools/docs/hooks.py"
    path.write_text(f"INHERIT: {ROOT / docs.CONFIG}\nhooks: [{hooks}]\nwatch: []\n{more}")


def test_pages_sources_and_folders_are_linked(made):
    assert docs.build(made) == 0
    front = (made.build / "site/index.html").read_text()
    for address in ("docs/page/#what-it-does", "src/code.cpp/", "src/", "docs/plot.svg"):
        assert f'"{address}"' in front
    assert "<li>one</li>" in front
    assert "a comment" not in front
    assert "answer" in (made.build / "site/src/code.cpp/index.html").read_text()
    assert "code.cpp" in (made.build / "site/src/index.html").read_text()


FAULTS = {
    "[a page](docs/none.md)": "docs/none.md",
    "[a source](src/none.cpp)": "src/none.cpp",
    "[a heading](docs/page.md#none)": "does not contain an anchor '#none'",
    "[here](#nowhere)": "no such anchor on this page",
    "![a plot](docs/none.svg)": "docs/none.svg",
    "[outside](/etc/passwd)": "/etc/passwd",
}


def test_each_broken_link_is_reported(made, capfd):
    readme = made.root / "README.md"
    readme.write_text(README + "".join(f"\n{fault}\n" for fault in FAULTS))
    assert docs.build(made) != 0
    said = capfd.readouterr().err
    missed = [fault for fault, word in FAULTS.items() if word not in said]
    assert not missed


def test_a_page_that_no_menu_has_is_reported(made, capfd):
    (made.root / "docs/lost.md").write_text("# Lost\n")
    assert docs.build(made) != 0
    assert "docs/lost.md" in capfd.readouterr().err


def test_the_site_of_this_checkout_is_whole(tmp_path):
    configure(tmp_path, f"docs_dir: {ROOT / 'docs'}\n")
    assert docs.build(Checkout(tmp_path)) == 0
    site = tmp_path / "build/site"
    for name in (ROOT / "include/terrace").glob("*.h"):
        assert (site / f"include/terrace/{name.name}/index.html").is_file()
    assert 'id="terrace_lab_take"' in (site / "include/terrace/lab.h/index.html").read_text()
    index = json.loads((site / "search/search_index.json").read_text())
    places = {entry["location"] for entry in index["docs"]}
    assert {"include/umem.h/#umem_alloc-umem_zalloc", "docs/adr/"} <= places
    assert not any(place.startswith("src/") for place in places)
