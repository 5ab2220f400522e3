# SPDX-License-Identifier: MIT OR Apache-2.0
"""`terrace test --changed`: the tests that matter most for what differs from main.

The first rule that a path matches names its tests, and what is built for them. It is a first look:
before a change lands, all of `terrace test` must pass.
"""

import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from terrace import build, testing
from terrace.captured import run_captured
from terrace.checkout import Checkout
from terrace.errors import TerraceError
from terrace.messages import say


@dataclass(frozen=True)
class Rule:
    """`tests` is a pattern for ctest; it and `targets` may use groups of `paths`."""

    paths: str
    tests: str
    targets: tuple[str, ...] = ()
    preset: str = "dev"


API = ("tests/api/all", "terrace_shared")  # the tests preload it

# fmt: off
RULES = (
    Rule(r".*\.md$", r"^layers\.(planted_faults_of_)?documentation|^lint\.spell|^tool\.docs$"),
    Rule(r"tools/(docs)/", r"^tool\.\1$"),
    Rule(r"(src/arch|tests/inject)/", r"^inject\.", ("tests/inject/all",), "inject"),
    Rule(r"(src/lab|include/terrace/lab|tests/lab)", r"^lab\.([A-Z]|oracle)", ("tests/lab/all",)),
    Rule(r"(src|tests)/vmem/", r"^vmem\.", ("tests/vmem/all",)),
    Rule(r"(src/umem|src/shim/umem|tests/libumem)/", r"^libumem\.(api|malloc|messages|options)", ("tests/libumem/all",)),
    Rule(r"(src/shim|tests/api)/", r"^api\.", API),
    Rule(r"(src|include|tests/unit)/", r"^unit\.|^api\.(mm_cid|thread)", ("tests/unit/all", *API)),
    Rule(r"integrations/rust/", r"^tool\.crate$"),
    Rule(r"tests/(misuse|stress)/", r"^\1\.", (r"tests/\1/all", "terrace_shared")),
    Rule(r"tests/(env|record|preload|fastpath)/", r"^\1\.", (), "release"),
    Rule(r"tests/tool/test_(\w*)end_to_end\.py", r"^tool\.\1end_to_end", (), "release"),
    Rule(r"tests/tool/test_(\w+)\.py", r"^tool\.\1$"),
    Rule(r"tools/terrace/(jdk|vm|debug|profile|record|report)", r"^tool\.\1(_umem|_parts|_suites|_table)?$"),
    Rule(r"packaging/|tools/terrace/package/", r"^tool\.package_end_to_end", (), "release"),
    Rule(r"tools/terrace/(?:\w+/)*(\w+)\.py", r"^tool\.(\1|run|script|testing)$"),
    Rule(r"tests/(tool)/", r"^\1\."),
    Rule(r"(?:bench|tests)/(compare|peers|soak)/", r"^\1\."),
    Rule(r"bench/(\w+)/", r"^bench\.", (), "release"),
    Rule(r"models/", r"^models\."),
    Rule(r"(?:fuzz|tests/topology)/", r"^(fuzz|topology)\."),
    Rule(r"", r"^layers\.|^lint\.sp"),
)
# fmt: on


@dataclass(frozen=True)
class Choice:
    """What is built and tested of one preset; without targets everything is built."""

    tests: tuple[str, ...]
    targets: tuple[str, ...]


def _git(root: Path, *words: str) -> list[str]:
    done = run_captured(["git", *words], cwd=root)
    return done.stdout.splitlines() if done.returncode == 0 else []


def changed_paths(root: Path) -> list[str]:
    """What differs from where this branch left main, committed or not; files that are new, too."""
    bases = (_git(root, "merge-base", "HEAD", main) for main in ("origin/main", "main", "HEAD"))
    base = next((found[0] for found in bases if found), None)
    if base is None:
        raise TerraceError("test --changed: git finds no commit to compare with")
    others = _git(root, "ls-files", "--others", "--exclude-standard")
    return sorted({*_git(root, "diff", "--name-only", base), *others})


def choose(paths: list[str]) -> dict[str, Choice]:
    """By preset, in the order of testing.PRESETS."""
    wanted: dict[str, list[tuple[str, tuple[str, ...]]]] = {}
    for path in paths:
        rule, found = next((r, m) for r in RULES if (m := re.match(r.paths, path)))
        targets = tuple(found.expand(target) for target in rule.targets)
        wanted.setdefault(rule.preset, []).append((found.expand(rule.tests), targets))
    return {
        preset: Choice(
            tuple(dict.fromkeys(tests for tests, _ in wanted[preset])),
            tuple(dict.fromkeys(t for _, targets in wanted[preset] for t in targets)),
        )
        for preset in testing.PRESETS
        if preset in wanted
    }


def _build(checkout: Checkout, preset: str, targets: tuple[str, ...]) -> float:
    """Tests of Python and of documents need a configured tree and nothing that is compiled."""
    with checkout.locked(preset):
        if not (checkout.build / preset / "build.ninja").exists():
            build.configure(checkout, preset, testing.options_for(preset))
        if targets:
            build.compile_targets(checkout, preset, targets)
        elif preset == "release":
            build.build_preset(checkout, preset, testing.options_for(preset))
    return 0.0


def run_changed(checkout: Checkout) -> int:
    """Exit status 0 when nothing failed."""
    choices = choose(changed_paths(checkout.root))
    if not choices:
        say("test --changed: nothing differs from main", always=True)
        return 0
    results = [testing.check_layers(checkout)]
    for preset, choice in choices.items():
        say(f"preset {preset}: tests {' '.join(choice.tests)}", always=True)
        with ThreadPoolExecutor(1) as builder:
            built = builder.submit(_build, checkout, preset, choice.targets)
            pattern = ["--tests-regex", "|".join(choice.tests)]
            results.append(testing.run_preset(checkout, preset, built, pattern))
    testing.print_summary(results)
    return 1 if any(result.failed for result in results) else 0
