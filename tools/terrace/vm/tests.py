# SPDX-License-Identifier: MIT OR Apache-2.0
"""Which of ctest's tests run in a guest, with which files: as ctest on the host would run them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Preset -> the directories of tests/ that it builds for a guest.
FOLDERS = {
    "release": ("unit", "topology", "api", "stress", "env", "misuse", "vm"),
    "inject": ("inject",),
}

# Emulation takes 20 to 100 times as long; what a guest can not tell better than the host stays out:
# - api, misuse: one placement on each rung is enough to see that a kernel and a libc get on with it;
#   and of the API not what compares the contents of many blocks byte by byte
# - stress: glibc, the library with few homes, and that the oracle finds broken allocators, which have
#   nothing to do with the kernel
# - env: emulators inside the emulator, searches for a limit or a place, how much memory is held, and
#   programs that fork all the time: each takes a minute or more. The storms of the stress fork, too.
# - topology: descriptions of other machines; the guest's own map is compared with hwloc's
_FORKS = (
    r"fork_\w+|vfork_\w+|thread_exit|thread_storm|handlers_that_allocate|spawn_system_popen"
    r"|checks|one_cpu|rseq_not_registered_by_libc"
)
_MEMORY = (
    r"address_space_limit|data_limit|small_address_space_runs|growing_vectors_\w+|as_many_mappings_\w+"
    r"|aligned_blocks_waste_little|giving_back_\w+|resident_\w+|\w+_thousand_threads"
    r"|no_place_of_our_choice|reservations_behind_the_heap|second_copy"
)
_WORDS = r"(un)?known_values"
# In this order, what depends most on kernel and machine first: a guest may run out of time.
_FIRST = (
    r"vm\.",
    r"inject\.",
    r"unit\.(Transaction|Ladder)|topology\.Hwloc",
    r"stress\.(mm_cid|cpu_id)\.(calm|storm)$",
    r"unplug\.stress\.(mm_cid|cpu_id)\.",
    r"env\.(rungs_are_forced|rseq_is_the_programs|workout|layouts|before_main|after_main"
    r"|blocks_of_other_homes|threads_not_\w+)$",
    r"unit\.",
)
ORDER = (
    *_FIRST,
    r"(api|misuse)\.\w+\.punctuated$",
    r"(unplug\.)?stress\.(getcpu|thread)\.(calm|storm)$",
    rf"env\.(?!under_|({_FORKS}|{_MEMORY}|{_WORDS})$)",
)
CHOSEN = re.compile("|".join(ORDER))

# What some guests have: not what calculates, as it comes to the same on each kernel.
_CALCULATES = r"Placement|SizeClass|SpansTest\.a_random_walk|Retention|bins|Writer|balance_with_a_small"
BRIEF = re.compile(rf"(?!unit\.({_CALCULATES}))({'|'.join(_FIRST)})")

# A guest is that much slower than the machine that the limits were made for.
SLOWER = 4
STRESS_SECONDS = 6

# What needs the guest's CPUs for itself, as delays, signals and forks shall meet threads at work; and
# what changes a setting of the whole machine.
ALONE = re.compile(r"vm\.|inject\.|unit\.Transaction|(unplug\.)?stress\.|env\.no_overcommit$")

# Of the API's tests, those that write and compare the most, or that fork the most: a minute each.
_LONG = (
    "realloc_.to_*:realloc_.*keeps*content*:*every*:*gigabyte*:calloc_.of_*"
    ":free_.preserves_errno_when_many*:mallinfo2_.stays_sensible*"
)


@dataclass(frozen=True)
class GuestTest:
    """One test, its paths as on the host."""

    name: str
    command: list[str]
    environment: dict[str, str]
    directory: str
    timeout: float
    skip_status: int | None
    skip_pattern: str | None

    def as_plan(self) -> dict[str, Any]:
        return {**vars(self), "alone": bool(ALONE.match(self.name))}


def _guest_command(words: list[str], build: Path) -> list[str]:
    """Without an emulator in front; by the guest's Python instead of the host's."""
    for i, word in enumerate(words):
        if re.fullmatch(r"python3?(\.\d+)?", Path(word).name):
            return ["/usr/bin/python3", *words[i + 1 :]]
        if word.startswith(f"{build}/"):
            return words[i:]
    return words


def _lengthen(words: list[str]) -> list[str]:
    """The oracle stress goes on for longer; signals and forks leave an emulated CPU time to work."""
    longer = list(words)
    if "--seconds" in words:
        longer[words.index("--seconds") + 1] = str(STRESS_SECONDS)
    return [*longer, "--signal-interval", "20000", "--fork-interval", "250"]


def _shorten(words: list[str]) -> list[str]:
    """The API without what takes long in a guest."""
    if any(word.startswith("--gtest_filter") for word in words):
        return words
    return [*words, f"--gtest_filter=-{_LONG}"]


def _properties(entry: dict[str, Any]) -> dict[str, Any]:
    return {p["name"]: p["value"] for p in entry.get("properties", [])}


def rank(name: str) -> int:
    """The place in the order of the kind of test."""
    return next(i for i, pattern in enumerate(ORDER) if re.match(pattern, name))


def read_tests(
    listing: dict[str, Any], build: Path, folders: tuple[str, ...]
) -> list[GuestTest]:
    """The chosen ones of `ctest --show-only=json-v1`, of the folders that were compiled there.

    Scripts of other folders are listed too, but their programs are not there.
    """
    tests = []
    for entry in listing["tests"]:
        if not CHOSEN.match(entry["name"]) or "command" not in entry:
            continue
        if entry["name"].partition(".")[0] not in folders:
            continue
        properties = _properties(entry)
        variables = (x.partition("=") for x in properties.get("ENVIRONMENT", []))
        patterns = properties.get("SKIP_REGULAR_EXPRESSION", [])
        words = _guest_command(entry["command"], build)
        if words[0].endswith("/stress/stress"):
            words = _lengthen(words)
        if words[0].endswith("/api/api_test"):
            words = _shorten(words)
        tests.append(
            GuestTest(
                name=entry["name"].partition("  # GetParam")[0],
                command=words,
                environment={
                    "TERRACE_TEST_TIMEOUT": str(120 * SLOWER),
                    **{name: value for name, _, value in variables},
                },
                directory=properties.get("WORKING_DIRECTORY", str(build)),
                timeout=SLOWER * float(properties.get("TIMEOUT", 120)),
                skip_status=properties.get("SKIP_RETURN_CODE"),
                skip_pattern=patterns[0] if patterns else None,
            )
        )
    return tests


def _programs(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.suffix != ".o":
            with path.open("rb") as file:
                if file.read(4) == b"\x7fELF":
                    yield path


def guest_files(root: Path, build: Path, folders: tuple[str, ...]) -> dict[Path, Path]:
    """Programs, libraries and scripts: path on the host -> path in the guest, which is the same."""
    files = sorted(build.glob("libterrace.so*"))
    for name in folders:
        files += _programs(build / "tests" / name)
        files += sorted((root / "tests" / name).glob("*.py"))
    return {p: p for p in files}
