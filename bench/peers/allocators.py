# SPDX-License-Identifier: MIT OR Apache-2.0
"""The allocators of the comparison: where each one's object is, and what the environment has to say for it."""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from interleave import Subject, glibc, preloaded

GLIBC, TERRACE = "glibc", "terrace"


@dataclass(frozen=True)
class Peer:
    """Built by `terrace bench peers`, or, with patterns of absolute paths, installed by a package."""

    name: str
    environment: dict[str, str] = field(default_factory=dict)
    installed: tuple[str, ...] = ()

    def library(self, build_root: Path) -> Path | None:
        """The object to preload, if it is there."""
        if not self.installed:
            built = build_root / self.name / f"lib{self.name}.so"
            return built.resolve() if built.exists() else None
        found = (path for pattern in self.installed for path in sorted(Path("/").glob(pattern.lstrip("/"))))
        return next(found, None)


def _installed(name: str, file: str) -> Peer:
    return Peer(name, installed=(f"/usr/lib/*/{file}", f"/usr/lib*/{file}", f"/usr/local/lib/{file}"))


PEERS = (
    # glibc registers the thread's rseq area first and tcmalloc wants one of its own: without the tunable it quietly has a
    # cache per thread instead of one per CPU.
    Peer("tcmalloc", {"GLIBC_TUNABLES": "glibc.pthread.rseq=0"}),
    Peer("mimalloc"),
    Peer("snmalloc"),
    Peer("jemalloc"),
    Peer("rpmalloc"),
    _installed("gperftools", "libtcmalloc_minimal.so.4"),
    _installed("hoard", "libhoard.so"),
)
# What a user gets from a distribution, by the names that it has there.
DISTRIBUTED = (
    _installed("jemalloc", "libjemalloc.so.2"),
    _installed("tcmalloc", "libtcmalloc_minimal.so.4"),
    _installed("mimalloc", "libmimalloc.so.2*"),
)


def _present(library: Path, build_root: Path) -> Iterator[Subject]:
    yield glibc()
    if library.exists():
        yield preloaded(TERRACE, library)
    for peer in PEERS:
        found = peer.library(build_root)
        if found is not None:
            yield preloaded(peer.name, found, **peer.environment)


def distributed() -> list[Subject]:
    """Those that are installed."""
    found = [(peer.name, peer.library(Path())) for peer in DISTRIBUTED]
    return [preloaded(name, library) for name, library in found if library is not None]


def subjects(library: Path, build_root: Path, names: Sequence[str] | None = None) -> list[Subject]:
    """Those that are there, in the order glibc, Terrace (its object is `library`), peers; `build_root` is where
    `terrace bench peers` puts what it builds (build/peers). With names, these, in this order, and it is an error if one
    is not there."""
    present = {subject.name: subject for subject in _present(library, build_root)}
    if names is None:
        return list(present.values())
    known = (GLIBC, TERRACE, *(peer.name for peer in PEERS))
    for name in names:
        if name not in known:
            raise SystemExit(f"there is no allocator {name}; there are: {', '.join(known)}")
        if name not in present:
            raise SystemExit(f"{name} is not here; `terrace bench peers` builds it or says what is missing")
    return [present[name] for name in names]


def with_settings(subjects: Sequence[Subject], words: str) -> Subject:
    """An allocator with more in its environment: `NAME VARIABLE=VALUE ...`, which is its name, too."""
    name, *settings = shlex.split(words) or [""]
    known = {subject.name: subject for subject in subjects}
    if name not in known or not all("=" in setting for setting in settings):
        raise SystemExit(f"{words}: not of the form NAME VARIABLE=VALUE ...; names here: {', '.join(known)}")
    return Subject(words, known[name].environment | dict(setting.split("=", 1) for setting in settings))
