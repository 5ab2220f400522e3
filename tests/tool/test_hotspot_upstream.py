# SPDX-License-Identifier: MIT OR Apache-2.0
"""The patches for OpenJDK alone apply to HotSpot's source, without the queue."""

import pytest
from conftest import ROOT
from test_hotspot import missing

from terrace.captured import run_tool
from terrace.checkout import Checkout
from terrace.errors import TerraceError
from terrace.jdk import source as jdk_source

PATCHES = sorted((ROOT / "integrations/hotspot/upstream").rglob("*.diff"))


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """What the patches change, as the archive has it."""
    checkout = Checkout(ROOT)
    source = jdk_source.read_source(checkout)
    try:
        archive = jdk_source.fetch(checkout, source)
    except TerraceError as error:
        missing(f"HotSpot's source can not be had: {error}")
    files = jdk_source.touched_by([patch.read_text() for patch in PATCHES])
    members = [f"{source.unpacked}/{name}" for name, new in files.items() if not new]
    directory = tmp_path_factory.mktemp("hotspot")
    run_tool(["tar", "-xf", str(archive), "-C", str(directory), *members])
    return directory / source.unpacked


@pytest.mark.parametrize("patch", PATCHES, ids=lambda patch: patch.stem)
def test_it_applies(tree, patch):
    run_tool(
        ["patch", "--dry-run", "--batch", "--fuzz=0", "-p1", "-d", str(tree), "-i", str(patch)]
    )
    assert jdk_source.touched(patch.read_text())
