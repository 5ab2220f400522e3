# SPDX-License-Identifier: MIT OR Apache-2.0
"""Interpreters on scripts of ours.

What of their memory malloc sees: Lua and Perl take everything from it. Python serves objects up to 512 bytes from arenas of
its own, except with PYTHONMALLOC=malloc, which is a workload of its own. Ruby has slots for small objects, their bodies are
malloc's. V8's heap is mapped by V8; malloc has buffers, compression and what surrounds the heap.
"""

from pathlib import Path

from generated import NODE, PERL
from recipe import Recipe, find

SCRIPTS = Path(__file__).resolve().parent / "scripts"
STEADY = {"PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1", "PERL_HASH_SEED": "0"}


def _script(name: str, program: str, script: str, **environment: str) -> Recipe:
    command = [find(program) or program, str(SCRIPTS / script)]
    word = script.partition(".")[0]
    return Recipe(name, lambda _: command, rf"^{word}\s+\d+", (program,), environment={**STEADY, **environment})


def _inline(name: str, program: str, text: str, expects: str) -> Recipe:
    command = [find(program) or program, "-e", text]
    return Recipe(name, lambda _: command, expects, (program,), environment=STEADY)


def _lua() -> str:
    return next((name for name in ("lua5.4", "lua5.3", "lua") if find(name)), "lua5.4")


def recipes() -> list[Recipe]:
    python = [(f"python-{script}", f"{script}.py") for script in ("documents", "containers", "objects")]
    return [
        *(_script(name, "python3", script) for name, script in python),
        *(_script(f"{name}-malloc", "python3", script, PYTHONMALLOC="malloc") for name, script in python),
        _script("lua-trees", _lua(), "trees.lua"),
        _script("lua-strings", _lua(), "strings.lua"),
        _script("ruby-heap", "ruby", "heap.rb"),
        _script("perl-objects", "perl", "objects.pl"),
        _inline("perl-hashes", "perl", PERL, r"^150000 \d+ \d+"),
        _script("node-buffers", "node", "buffers.js"),
        _inline("node-map", "node", NODE, r"^500000 \d+"),
    ]
