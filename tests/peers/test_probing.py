# SPDX-License-Identifier: MIT OR Apache-2.0
"""What a probe's answer proves, and what is read from an object."""

import json
import shutil
import struct
import subprocess
from dataclasses import replace
from pathlib import Path

import probing
import pytest
from recipes import HERE


def words(owner: str, **changes) -> probing.Words:
    functions = {"malloc": owner, "free": owner, "_Znwm": None}
    return replace(probing.Words(functions, {"24": 24}, "2.36", 0), **changes)


def test_an_allocator_that_serves_everything_is_not_complained_of():
    assert probing.complaints(words("/a/libpeer.so"), Path("/a/libpeer.so")) == []
    assert probing.complaints(words("/lib/libc.so.6", gained_by_libc=10**6), None) == []


@pytest.mark.parametrize(
    ("said", "library", "complaint"),
    [
        (words("/lib/libc.so.6"), Path("/a/libpeer.so"), "malloc is that of /lib/libc.so.6"),
        (words("/a/p.so", functions={"free": None}), Path("/a/p.so"), "there is no free"),
        (words("/a/p.so", functions={"_Znwm": "/b/o.so"}), Path("/a/p.so"), "_Znwm is that of"),
        (words("/a/p.so", gained_by_libc=10**6), Path("/a/p.so"), "libc's heap grew"),
        (words("/a/p.so", usable={"24": 16}), Path("/a/p.so"), "of 24 bytes 16"),
        (words("/a/p.so", gained_by_libc=10**6), None, "malloc is that of /a/p.so"),
        (words("/lib/libc.so.6"), None, "proves nothing"),
    ],
)
def test_who_does_not_serve_is_told(said, library, complaint):
    assert any(complaint in line for line in probing.complaints(said, library))


def test_the_probe_sees_that_a_preloaded_object_does_not_serve(tmp_path):
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no compiler")
    (tmp_path / "idle.c").write_text("int idle;\n")
    idle, probe = tmp_path / "idle.so", tmp_path / "probe"
    source = HERE / "probe.c"
    subprocess.run([compiler, "-shared", "-fPIC", tmp_path / "idle.c", "-o", idle], check=True)
    subprocess.run([compiler, "-fno-builtin", "-pthread", source, "-o", probe, "-ldl"], check=True)
    environment = {"PATH": "/usr/bin:/bin", "LD_PRELOAD": str(idle)}
    answer = subprocess.run([probe], env=environment, capture_output=True, text=True, check=True)
    said = probing.Words(**json.loads(answer.stdout))
    assert probing.complaints(said, None) == []
    assert any(line.startswith("malloc is that of") for line in probing.complaints(said, idle))
    assert any("libc's heap grew" in line for line in probing.complaints(said, idle))


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("30302", "3.3.2"),
        ("5.3.1-0-g81034ce1f1373e37", "5.3.1-0-g81034ce"),
        ("gperftools 2.10", "2.10"),
        ("2.36", "2.36"),
    ],
)
def test_versions_are_readable(text, version):
    assert probing.readable_version(text) == version


@pytest.mark.parametrize(
    ("content", "compiler"),
    [
        (b"\0GCC: (Debian 12.2.0-14) 12.2.0\0Debian clang version 14.0.6\0", "clang 14.0.6"),
        (b"\0GCC: (Debian 12.2.0-14) 12.2.0\0", "gcc 12.2.0"),
        (b"Compiled by GNU CC version 12.2.0.\n", "gcc 12.2.0"),
        (b"", "-"),
    ],
)
def test_the_compiler_is_read_from_the_object(content, compiler):
    assert probing.object_compiler(content) == compiler


def test_only_what_is_loaded_counts():
    segments = ((1, 100), (2, 1000), (1, 20))
    table = b"".join(struct.pack("<IIQQQQQQ", k, 0, 0, 0, 0, size, size, 0) for k, size in segments)
    header = b"\x7fELF\x02".ljust(32, b"\0")
    header += struct.pack("<QQIHHHHHH", 64, 0, 0, 64, 56, len(segments), 0, 0, 0)
    assert probing.loaded_bytes(header + table) == 120
    with pytest.raises(ValueError, match="ELF"):
        probing.loaded_bytes(b"#!/bin/sh")
