# SPDX-License-Identifier: MIT OR Apache-2.0
"""`terrace jdk`: a JDK whose TLABs come from buffers of the cores (integrations/hotspot)."""

from __future__ import annotations

import os
from pathlib import Path

from terrace import jdk_build, jdk_test, launch
from terrace.checkout import Checkout
from terrace.errors import TerraceError
from terrace.jdk_source import read_source, work_directory
from terrace.messages import say


def _up_to_date(checkout: Checkout, level: str) -> Path:
    jdk_build.announce(checkout)
    return jdk_build.build_jdk(checkout, level)


def build(checkout: Checkout, level: str) -> int:
    """Builds what is not there, and says where it is."""
    image = _up_to_date(checkout, level)
    say(f"jdk: {image}", always=True)
    return 0


def is_built(checkout: Checkout, level: str) -> bool:
    """Whether there is one, up to date or not."""
    return (work_directory(checkout) / f"jdk-{level}" / "terrace-complete").exists()


def run(checkout: Checkout, level: str, words: list[str]) -> int:
    """Becomes the patched `java` with the buffers on; builds it before, if there is none yet."""
    image = work_directory(checkout) / f"jdk-{level}"
    if not is_built(checkout, level):
        image = _up_to_date(checkout, level)
    java = str(image / "bin" / "java")
    try:
        os.execve(java, [java, *jdk_test.HAB, *words], launch.original_environment())
    except OSError as error:
        raise TerraceError(f"{java}: {error.strerror}") from None


def test(checkout: Checkout, level: str, pattern: str | None) -> int:
    """The programs on both JVMs."""
    image = _up_to_date(checkout, level)
    return jdk_test.test(checkout, jdk_build.find_jdk(read_source(checkout)), image, pattern)
