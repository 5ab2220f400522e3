#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Fails on an include that tools/layers.toml does not list, on a cycle, on `../`, and on system calls outside of their layers;
likewise on imports of tools/terrace in a circle, or from a package to another one that is not listed.

check_layers.py [--root DIR]      the checkout to look at
check_layers.py --selftest        plants each kind of breach in a copy and must find it
"""

import argparse
import ast
import graphlib
import pathlib
import re
import shutil
import sys
import tempfile
from collections.abc import Iterable, Mapping

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)
SYSTEM_CALL = re.compile(r"\bsyscall\s*\(|<sys/syscall\.h>|^\s*(?:\"\s*)?syscall\b|\bsvc\s+#?0|raw_syscall", re.M)
SUFFIXES = {".h", ".cpp", ".S"}


def read_toml(path: pathlib.Path) -> dict[str, dict[str, list[str]]]:
    """The subset used here (lists of strings in tables), so that Python before 3.11 will do."""
    tables: dict[str, dict[str, list[str]]] = {}
    table: dict[str, list[str]] = {}
    for line in path.read_text().splitlines():
        line = line.split("#")[0].strip()
        if line.startswith("["):
            table = tables.setdefault(line.strip("[]"), {})
        elif "=" in line:
            key, value = line.split("=", 1)
            table[key.strip()] = re.findall(r'"([^"]*)"', value)
    return tables


def find_cycle(edges: Mapping[str, Iterable[str]]) -> list[str]:
    """One circle among the edges, or nothing."""
    try:
        graphlib.TopologicalSorter(edges).prepare()
    except graphlib.CycleError as error:
        return list(error.args[1])
    return []


def imports(path: pathlib.Path, modules: Iterable[str]) -> set[str]:
    """The modules of ours that a Python file imports, wherever in it: one in a function is an import, too."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found & set(modules)


def tool_breaches(root: pathlib.Path, allowed: dict[str, list[str]]) -> list[str]:
    """No circle among the modules of tools/terrace; a package imports only from packages that layers.toml lists."""
    tools = root / "tools"
    modules = {
        ".".join(path.relative_to(tools).with_suffix("").parts): path
        for path in sorted((tools / "terrace").rglob("*.py"))
        if path.name != "__init__.py"
    }
    edges = {module: imports(path, modules) for module, path in modules.items()}
    packages = {path.parent.name for path in (tools / "terrace").glob("*/__init__.py")}
    found = [f"tools: imports in a circle: {' -> '.join(cycle)}"] if (cycle := find_cycle(edges)) else []
    for module, targets in edges.items():
        package = module.split(".")[1]
        if package not in packages:
            continue
        for target in sorted(targets):
            other = target.split(".")[1]
            if other in packages and other not in [package, *allowed.get(package, [])]:
                found.append(f"{modules[module].relative_to(root)}: {package} may not import {target}")
    return found


def room_of(parts: tuple[str, ...], rooms: dict[str, list[str]]) -> str | None:
    """None: the file lies in the layer itself."""
    return parts[1] if len(parts) > 2 and parts[1] in rooms else None


def breaches(root: pathlib.Path) -> list[str]:
    tables = read_toml(root / "tools" / "layers.toml")
    edges, may_call = tables["layers"], tables["system_calls"]["allowed"]
    checked = [edges, *(table for name, table in tables.items() if name.startswith("rooms."))]
    found = [f"layers.toml: cycle {' -> '.join(cycle)}" for table in checked if (cycle := find_cycle(table))]
    for path in sorted((root / "src").rglob("*")):
        if path.suffix not in SUFFIXES:
            continue
        parts, text, name = path.relative_to(root / "src").parts, path.read_text(), path.relative_to(root)
        layer = parts[0]
        if layer not in edges:
            found.append(f"{name}: {layer} is no layer of layers.toml")
            continue
        rooms = tables.get(f"rooms.{layer}", {})
        room = room_of(parts, rooms)
        for include in INCLUDE.findall(text):
            target = include.split("/")[0]
            if target == layer and room and (there := room_of(tuple(include.split("/")), rooms)) != room:
                if there not in rooms[room]:
                    found.append(f"{name}: {layer}/{room} may not include {include}")
                continue
            if ".." in include:
                found.append(f"{name}: includes {include}; give the path from src/")
            elif target in ("terrace", layer) or (root / "include" / include).is_file():
                continue
            elif target not in edges[layer]:
                found.append(f"{name}: {layer} may not include {include}")
        if layer not in may_call and SYSTEM_CALL.search(text):
            found.append(f"{name}: system calls belong into os")
    return found + tool_breaches(root, tables["tools"])


def selftest(root: pathlib.Path) -> int:
    plants = {
        "src/base/planted.h": '#include "heap/heap.h"\n',
        "src/heap/slabs/planted.h": '#include "heap/levels/levels.h"\n',
        "src/heap/slabs/upward.h": '#include "heap/heap.h"\n',
        "src/heap/planted.h": '#include "../base/bits.h"\n',
        "src/level/planted.cpp": "#include <sys/syscall.h>\n",
        "src/nowhere/planted.h": "\n",
        "tools/terrace/report/planted.py": "from terrace.debug import live\n",
        "tools/terrace/errors.py": "def late():\n    from terrace.messages import say\n    from terrace.checkout import Checkout\n",
    }
    missed = 0
    for name, text in plants.items():
        with tempfile.TemporaryDirectory() as directory:
            copy = pathlib.Path(directory)
            shutil.copytree(root / "src", copy / "src")
            shutil.copytree(root / "tools", copy / "tools", ignore=shutil.ignore_patterns("__pycache__"))
            (copy / name).parent.mkdir(exist_ok=True)
            (copy / name).write_text(text)
            if not any(name in b or name.removesuffix(".py").replace("/", ".")[6:] in b for b in breaches(copy)):
                print(f"not found: {text!r} in {name}")
                missed += 1
    print(f"{len(plants) - missed} of {len(plants)} planted breaches found")
    return 1 if missed else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    parser.add_argument("--selftest", action="store_true")
    arguments = parser.parse_args()
    if arguments.selftest:
        return selftest(arguments.root)
    found = breaches(arguments.root)
    for breach in found:
        print(breach)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
