# SPDX-License-Identifier: MIT OR Apache-2.0
"""What is fetched, what is built when, and what a build that fails leaves behind."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import allocators
import building
import pytest
import recipes

LOCK = """version = 4

[[package]]
name = "peers"
version = "0.0.0"
dependencies = [
 "made-up-sys",
]

[[package]]
name = "made-up-sys"
version = "1.2.3+9.8"
source = "registry"
checksum = "abc"
"""


def nothing(_name: str, _done: int, _total: int) -> None:
    pass


def writing(text: str, status: int = 0):
    """Steps that note in the peers' folder that they ran, make the product and end as told."""
    script = f"echo '[1/2] {text}'; echo ran >>../../ran; echo {text} >object; exit {status}"
    return lambda _site: [["sh", "-c", script]]


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A folder with the sources of one made-up crate."""
    crate = recipes.Crate("made-up-sys", "1.2.3+9.8", "abc")
    monkeypatch.setattr(building, "crates", lambda: {crate.name: crate})
    folder = tmp_path / "sources" / crate.folder
    folder.mkdir(parents=True)
    (folder / ".cargo-checksum.json").write_text(json.dumps({"files": {}, "package": "abc"}))
    return tmp_path


RECIPE = recipes.Recipe("made-up", "made-up-sys", "a mode", writing("one"), "object")


def runs(root: Path) -> int:
    return len((root / "ran").read_text().splitlines()) if (root / "ran").exists() else 0


def test_the_lock_file_says_what_is_fetched():
    crate = recipes.Crate("made-up-sys", "1.2.3+9.8", "abc")
    assert recipes.locked_crates(LOCK) == {crate.name: crate}


def test_every_recipe_has_a_locked_crate_and_a_subject():
    locked = building.crates()
    manifest, readme = ((recipes.HERE / name).read_text() for name in ("Cargo.toml", "README.md"))
    for recipe in recipes.RECIPES:
        version = locked[recipe.crate].short_version
        assert f'{recipe.crate} = "={version}"' in manifest
        assert f"| crate {recipe.crate} {version}" in readme
    built = {peer.name for peer in allocators.PEERS if not peer.installed}
    assert built == {recipe.name for recipe in recipes.RECIPES}


def test_sources_with_another_checksum_are_fetched_again(root):
    crate = building.crates()["made-up-sys"]
    assert building.has_sources(root, crate)
    assert not building.has_sources(root, replace(crate, checksum="other"))
    assert not building.has_sources(root, replace(crate, version="2"))


def test_a_peer_is_built_once(root):
    building.build(RECIPE, root, 1, False, nothing)
    assert (root / "made-up" / "libmade-up.so").read_text() == "one\n"
    assert building.read_built(root, "made-up").origin == "crate made-up-sys 1.2.3"
    building.build(RECIPE, root, 8, False, nothing)
    assert runs(root) == 1
    building.build(RECIPE, root, 1, True, nothing)
    assert runs(root) == 2
    building.build(replace(RECIPE, steps=writing("two")), root, 1, False, nothing)
    assert (root / "made-up" / "libmade-up.so").read_text() == "two\n"


def test_progress_is_that_of_the_build(root):
    seen = []
    building.build(RECIPE, root, 1, False, lambda *progress: seen.append(progress))
    assert seen == [("made-up", 1, 2)]


def test_a_peer_that_fails_names_its_log_and_the_others_go_on(root):
    broken = replace(RECIPE, name="broken", steps=writing("why it failed", 3))
    absent = replace(RECIPE, name="absent", steps=lambda _site: [["no-such-program-at-all"]])
    failed = building.build_all([broken, absent, RECIPE], root, 1, False, nothing)
    assert set(failed) == {"broken", "absent"}
    assert "ended with 3" in failed["broken"]
    assert "why it failed" in Path(failed["broken"].rpartition(" ")[2]).read_text()
    assert "no-such-program" in failed["absent"]
    assert (root / "made-up" / "libmade-up.so").exists()
    assert not (root / "broken" / "libbroken.so").exists()


def test_a_build_without_sources_or_product_fails(root):
    with pytest.raises(building.BuildError, match="did not make"):
        building.build(replace(RECIPE, product="another"), root, 1, False, nothing)
    shutil.rmtree(root / "sources")
    with pytest.raises(building.BuildError, match="sources"):
        building.build(RECIPE, root, 1, False, nothing)


def test_upstreams_version_is_found_in_its_sources(root):
    crate = building.crates()["made-up-sys"]
    folder = root / "sources" / crate.folder
    (folder / "config.h").write_text("#define MADE_UP 77\n")
    site = recipes.Site(crate, folder, root, 1, recipes.system_compilers())
    said = replace(RECIPE, said_in=("config.h", r"#define (MADE)_UP (\d+)"))
    assert recipes.upstream_version(said, site) == "MADE 77, 9.8"
    assert recipes.upstream_version(RECIPE, site) == "9.8"
    plain = replace(site, crate=replace(crate, version="1.2.3"))
    assert recipes.upstream_version(RECIPE, plain) == "1.2.3"
