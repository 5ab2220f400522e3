# SPDX-License-Identifier: MIT OR Apache-2.0
"""How each peer is built: the crate that carries its sources, the commands, what comes out.

To add a peer: its crate with an exact version in Cargo.toml (and with its checksum in crates.lock), a Recipe
here, an entry in allocators.py, and, where upstream's own build can not be used, recipes/NAME/CMakeLists.txt with upstream's
release flags. `terrace bench peers NAME` builds it and proves that programs really get its malloc. README.md says which version
each peer has, and whether there is a newer one.
"""

import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
Command = list[str]


@dataclass(frozen=True)
class Crate:
    """A package of crates.lock."""

    name: str
    version: str
    checksum: str

    @property
    def folder(self) -> str:
        """What `cargo vendor --versioned-dirs` calls it."""
        return f"{self.name}-{self.version}"

    @property
    def short_version(self) -> str:
        """Without the upstream's version or commit behind the plus sign."""
        return self.version.partition("+")[0]


def locked_crates(text: str) -> dict[str, Crate]:
    """The packages of crates.lock (or of a Cargo.lock) by name; tomllib needs a newer Python than we do."""
    crates: dict[str, Crate] = {}
    for block in text.split("[[package]]")[1:]:
        fields = dict(re.findall(r'^(name|version|checksum) = "([^"]*)"$', block, re.MULTILINE))
        if "checksum" in fields:
            crates[fields["name"]] = Crate(**fields)
    return crates


@dataclass(frozen=True)
class Compilers:
    c: str
    cxx: str


def system_compilers() -> Compilers:
    return Compilers("cc", "c++")


def newest_clang() -> Compilers:
    """snmalloc wants a recent clang; the system's compiler works, too."""
    for suffix in (*(f"-{n}" for n in range(30, 12, -1)), ""):
        if shutil.which(f"clang{suffix}") and shutil.which(f"clang++{suffix}"):
            return Compilers(f"clang{suffix}", f"clang++{suffix}")
    return system_compilers()


@dataclass(frozen=True)
class Site:
    """Where one build happens: the crate's folder, an empty working directory and how many jobs it may use."""

    crate: Crate
    sources: Path
    work: Path
    jobs: int
    compilers: Compilers


def cmake(site: Site, project: Path, target: str, *settings: str) -> list[Command]:
    tools = [f"-DCMAKE_C_COMPILER={site.compilers.c}", f"-DCMAKE_CXX_COMPILER={site.compilers.cxx}"]
    return [
        ["cmake", "-S", str(project), "-B", str(site.work), "-G", "Ninja", *tools, *settings],
        ["cmake", "--build", str(site.work), "--parallel", str(site.jobs), "--target", target],
    ]


def own_cmake(name: str, folder: str) -> Callable[[Site], list[Command]]:
    """By recipes/NAME; no build type, because the flags there are all that counts."""

    def steps(site: Site) -> list[Command]:
        return cmake(site, HERE / "recipes" / name, name, f"-DSOURCES={site.sources / folder}", "-DCMAKE_BUILD_TYPE=")

    return steps


def snmalloc(site: Site) -> list[Command]:
    off = [f"-DSNMALLOC_{part}=OFF" for part in ("BUILD_TESTING", "STATIC_LIBRARY")]
    return cmake(site, site.sources / "upstream", "snmallocshim", "-DCMAKE_BUILD_TYPE=Release", *off)


def mimalloc(site: Site) -> list[Command]:
    """Upstream's CMake with its defaults; the crate carries the whole tree of a release."""
    off = [f"-DMI_BUILD_{part}=OFF" for part in ("STATIC", "OBJECT", "TESTS")]
    return cmake(site, site.sources / "c_src" / "mimalloc3", "mimalloc", "-DCMAKE_BUILD_TYPE=Release", *off)


def jemalloc(site: Site) -> list[Command]:
    """Upstream's configure, with the heap profiler that distributions have; the crate has it beside the tree, and it builds there."""
    version = site.crate.version.partition("+")[2]
    return [
        ["cp", "-r", f"{site.sources}/jemalloc/.", str(site.work)],
        ["cp", f"{site.sources}/configure/configure", str(site.work)],
        ["sh", "configure", f"CC={site.compilers.c}", f"CXX={site.compilers.cxx}", f"--with-version={version}", "--disable-static",
         "--disable-doc", "--enable-prof"],
        ["make", f"-j{site.jobs}", "build_lib_shared"],
    ]


@dataclass(frozen=True)
class Recipe:
    name: str
    crate: str
    mode: str  # how it is built inside, where the object does not tell by itself
    steps: Callable[[Site], list[Command]]
    product: str  # what comes out, in the working directory
    language: str = "c"
    compilers: Callable[[], Compilers] = system_compilers
    said_in: tuple[str, str] = ("", "")  # a file of the crate and a pattern for upstream's version, where the object has no call


RECIPES = (
    # The longest first.
    Recipe("tcmalloc", "libtcmalloc-sys", "caches per CPU or per thread", own_cmake("tcmalloc", "c_src"), "libtcmalloc.so", "c++",
           said_in=("c_src/abseil-cpp/absl/base/config.h", r"#define (ABSL)_LTS_RELEASE_VERSION (\d+)")),
    Recipe("jemalloc", "tikv-jemalloc-sys", "arenas, caches per thread", jemalloc, "lib/libjemalloc.so.2"),
    Recipe("snmalloc", "snmalloc-sys", "allocators per thread, messages between them", snmalloc, "libsnmallocshim.so", "c++",
           newest_clang),
    Recipe("mimalloc", "libmimalloc-sys2", "heaps per thread", mimalloc, "libmimalloc.so"),
    Recipe("rpmalloc", "rpmalloc-sys", "heaps per thread", own_cmake("rpmalloc", "rpmalloc/rpmalloc"), "librpmalloc.so",
           said_in=("rpmalloc/CHANGELOG", r"\A()(\d[\d.]+)")),
)


def upstream_version(recipe: Recipe, site: Site) -> str:
    """As the sources say it, and the crate's, which tells a commit where upstream has no releases."""
    file, pattern = recipe.said_in
    found = re.search(pattern, (site.sources / file).read_text(encoding="utf-8", errors="replace")) if file else None
    said = " ".join(found.groups()).strip().replace("ABSL", "abseil") if found else ""
    commit = site.crate.version.partition("+")[2]
    return ", ".join(part for part in (said, commit) if part) or site.crate.short_version
