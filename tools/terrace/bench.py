# SPDX-License-Identifier: MIT OR Apache-2.0
"""`terrace bench`: finds the drivers (bench/*/NAME.py with a main(argv)), lists them, runs one."""

import argparse
import ast
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from terrace import build
from terrace.arguments import Commands
from terrace.checkout import Checkout, need_checkout
from terrace.errors import TerraceError
from terrace.prepare import prepare

_SHARED = ("common", "peers", "seeds", "apps")


def _has_main(tree: ast.Module) -> bool:
    return any(isinstance(node, ast.FunctionDef) and node.name == "main" for node in tree.body)


def find_drivers(checkout: Checkout) -> dict[str, tuple[Path, str]]:
    """Name -> path and first line of the description, without running any of them."""
    drivers: dict[str, tuple[Path, str]] = {}
    for path in sorted(checkout.root.glob("bench/*/*.py")):
        try:
            tree = ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
        except SyntaxError:
            continue
        if _has_main(tree):
            text = (ast.get_docstring(tree) or "").strip()
            drivers.setdefault(path.stem, (path, text.partition("\n")[0]))
    return drivers


def purposes(path: Path) -> tuple[str, ...]:
    """What its packages are for in packages.txt: the driver's PURPOSES, else all benchmarks'."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "PURPOSES":
            return tuple(ast.literal_eval(node.value))
    return ("bench",)


def list_drivers(checkout: Checkout) -> int:
    """One line each."""
    drivers = find_drivers(checkout)
    for name, (path, description) in drivers.items():
        print(f"{name:<20} {description}  ({path.relative_to(checkout.root).parent})")
    if not drivers:
        print("there are no benchmark drivers (bench/*/NAME.py)")
    return 0


def prepare_programs(checkout: Checkout) -> None:
    """The library and the benchmark programs of the release preset, without the tests."""
    with checkout.locked():
        build.configure(checkout, "release", {"TERRACE_BENCH": "ON"})
        folders = sorted(p.parent for p in checkout.root.glob("bench/*/CMakeLists.txt"))
        targets = tuple(f"{folder.relative_to(checkout.root)}/all" for folder in folders)
        build.compile_targets(checkout, "release", ("terrace_shared", *targets))


def find_driver(checkout: Checkout, name: str) -> Path:
    """The path of the driver; TerraceError when there is none of this name."""
    drivers = find_drivers(checkout)
    if name not in drivers:
        raise TerraceError(f"there is no benchmark {name}; there are: " + " ".join(drivers), 2)
    return drivers[name][0]


def load_driver(path: Path) -> ModuleType:
    """On the module path are its own directory, and those of which several have modules."""
    folders = (path.parent, *(path.parent.parent / name for name in _SHARED))
    sys.path[:0] = map(str, folders)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def run_driver(checkout: Checkout, name: str, arguments: list[str]) -> int:
    """Loads the driver and calls its main(); builds the programs first, unless the
    driver has a needs_programs() that says of these arguments that they want none."""
    module = load_driver(find_driver(checkout, name))
    if getattr(module, "needs_programs", lambda _: True)(arguments):
        prepare_programs(checkout)
    return int(module.main(arguments) or 0)


def add_parser(commands: Commands) -> None:
    parser = commands.add_parser("bench", help="list the benchmarks, or run one")
    parser.add_argument("name", nargs="?", help="which one; without a name they are listed")
    parser.add_argument(
        "arguments", nargs=argparse.REMAINDER, help="what the benchmark itself understands"
    )
    parser.set_defaults(act=run)


def run(options: argparse.Namespace, checkout: Checkout | None) -> int:
    """The command."""
    checkout = need_checkout(checkout, "bench")
    if options.name is None:
        return list_drivers(checkout)
    driver = find_driver(checkout, options.name)  # before anything is installed for it
    prepare(checkout, purposes(driver), ("bench",))
    return run_driver(checkout, options.name, options.arguments)
