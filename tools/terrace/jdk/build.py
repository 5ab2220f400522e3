# SPDX-License-Identifier: MIT OR Apache-2.0
"""`terrace jdk build`: libjvm from the patched source, in a copy of the installed JDK."""

import re
import shutil
import subprocess
import time
from pathlib import Path

from terrace import build
from terrace.captured import run_tool
from terrace.checkout import Checkout
from terrace.errors import TerraceError
from terrace.jdk import modules
from terrace.jdk.installed import find_jdk
from terrace.jdk.source import (
    apply,
    fetch_for_tests,
    read_source,
    unpack,
    work_directory,
)
from terrace.messages import Step, progress, say

# What is left out takes half of the time and is of no use here.
LEFT_OUT = ("zgc", "shenandoahgc", "jvmci", "dtrace")
_TARGET = "hotspot-server-libs"

# The level of a JVM without the queue. By the same compiler as the patched one, so that what
# differs between the two is the patches' doing.
UNPATCHED = "unpatched"
_GIBIBYTES = 1.5  # the tree, the build, the copy of the JDK
_CORE_MINUTES = 25  # of compiling, on one core


def _space(directory: Path) -> float:
    while not directory.exists():
        directory = directory.parent
    return shutil.disk_usage(directory).free / 2**30


def announce(checkout: Checkout) -> None:
    """What the whole of it takes, before anything is done."""
    directory = work_directory(checkout)
    minutes = round(_CORE_MINUTES / build.available_cpus()) + 2
    say(
        f"jdk: about {_GIBIBYTES} GiB of disk below {directory} and {minutes} minutes on "
        f"{build.available_cpus()} cpus; what was done already is not done again",
        always=True,
    )
    if _space(directory) < _GIBIBYTES and not directory.exists():
        raise TerraceError(f"{directory}: less than {_GIBIBYTES} GiB are free; see TERRACE_JDK_DIR")


def _build_engine(checkout: Checkout) -> Path:
    """libterrace_lab.a of the release build; its directory."""
    with checkout.locked():
        directory = checkout.build / "release"
        if not (directory / "build.ninja").exists():
            build.configure(checkout, "release", {"TERRACE_TESTS": "OFF", "TERRACE_BENCH": "OFF"})
        build.compile_targets(checkout, "release", ("terrace_lab_archive",))
    return next(directory.rglob("libterrace_lab.a")).parent


def _googletest(checkout: Checkout) -> Path:
    """Its source; HotSpot's own unit tests are compiled with it."""
    archive = fetch_for_tests(checkout, "googletest")
    tree = archive.with_name("googletest")
    if not tree.is_dir():
        scratch = archive.with_name("googletest.unpacking")
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir()
        run_tool(["tar", "-xf", str(archive), "--strip-components=1", "-C", str(scratch)])
        scratch.rename(tree)
    return tree


def configuration(checkout: Checkout, jdk: Path, engine: Path | None, level: str) -> list[str]:
    """The words after `configure`. HotSpot's unit tests are compiled with assertions only."""
    # HotSpot's decoder of DWARF asserts that a whole library has it, or nothing of it.
    ldflags = f"-L{engine} -Wl,--strip-debug"
    include = f"-I{checkout.root / 'include'}"
    linked = [f"--with-extra-cxxflags={include}", f"--with-extra-ldflags={ldflags}"]
    tests = [f"--with-gtest={_googletest(checkout)}"] if level == "fastdebug" else []
    features = ",".join(f"-{name}" for name in LEFT_OUT)
    return [
        f"--with-boot-jdk={jdk}",
        f"--with-debug-level={'release' if engine is None else level}",
        "--with-jvm-variants=server",
        f"--with-jvm-features={features}",
        "--with-version-pre=",
        "--with-version-build=9",
        f"--with-version-opt={UNPATCHED if engine is None else modules.VERSION_OPT}",
        "--with-native-debug-symbols=none",
        "--disable-warnings-as-errors",
        "--enable-headless-only",
        *([] if engine is None else linked),
        *tests,
    ]


def _configure(directory: Path, tree: Path, words: list[str]) -> None:
    """Again only when the words differ: everything would be compiled again."""
    note = directory / "terrace-configuration"
    wanted = "\n".join(words)
    if note.exists() and note.read_text(encoding="utf-8") == wanted:
        return
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    say("configuring the JDK's build")
    run_tool(["bash", str(tree / "configure"), *words], cwd=str(directory))
    note.write_text(wanted, encoding="utf-8")


def time_left(done: int, before: int, total: int, seconds: float) -> str:
    """From the pace since the start, when `before` were done; "" while it says nothing."""
    if done <= before or seconds < 10:
        return ""
    left = seconds * (total - done) / (done - before)
    return f"{round(left / 60)} min left" if left >= 60 else f"{round(left)} s left"


def _watch(process: subprocess.Popen[str], log: Path, objects: Path, step: Step) -> None:
    """Counts the object files: make tells once how many there will be."""
    before, start, total = len(list(objects.glob("*.o"))), time.monotonic(), 0
    while True:
        try:
            process.wait(timeout=2)
            return
        except subprocess.TimeoutExpired:
            text = log.read_text(encoding="utf-8", errors="replace")
            found = re.search(r"libjvm\.so from (\d+) file", text)
            total = int(found.group(1)) if found else total
            done = min(len(list(objects.glob("*.o"))), total)
            if total:
                step.update(done, total, time_left(done, before, total, time.monotonic() - start))


def _make(directory: Path) -> None:
    log = directory / "terrace-build.log"
    objects = directory / "hotspot" / "variant-server" / "libjvm" / "objs"
    jobs = str(build.available_cpus())
    command = ["make", _TARGET, f"JOBS={jobs}"]
    with (
        progress("compiling libjvm") as step,
        log.open("w", encoding="utf-8") as output,
        subprocess.Popen(
            command,
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process,
    ):
        try:
            _watch(process, log, objects, step)
        except BaseException:
            process.terminate()  # make ends what it has started
            raise
        if process.returncode == 0:
            step.finish()
    if process.returncode != 0:
        tail = log.read_text(encoding="utf-8", errors="replace").splitlines()[-40:]
        raise TerraceError("\n".join([f"compiling libjvm failed ({log}):", *tail]))


def _libjvm(directory: Path) -> Path:
    return directory / "support" / "modules_libs" / "java.base" / "server" / "libjvm.so"


def _same(one: Path, other: Path) -> bool:
    """libjvm is copied with its date."""
    if not other.exists():
        return False
    a, b = one.stat(), other.stat()
    return (a.st_size, a.st_mtime_ns) == (b.st_size, b.st_mtime_ns)


def _copy(jdk: Path, image: Path) -> None:
    say(f"copying {jdk}")
    scratch = image.with_suffix(".copying")
    shutil.rmtree(scratch, ignore_errors=True)
    shutil.copytree(jdk, scratch, symlinks=True)
    scratch.rename(image)


def _image(checkout: Checkout, jdk: Path, tree: Path, objects: Path, image: Path) -> None:
    """A copy of the JDK with this libjvm, and class data archives that it can use."""
    libjvm, target = _libjvm(objects), image / "lib" / "server" / "libjvm.so"
    done = image / "terrace-complete"
    if not image.is_dir():
        _copy(jdk, image)
    if not done.exists() or not _same(libjvm, target):
        done.unlink(missing_ok=True)
    if image.name != f"jdk-{UNPATCHED}" and modules.update(checkout, jdk, tree, objects, image):
        done.unlink(missing_ok=True)
    if done.exists():
        return
    target.unlink(missing_ok=True)  # not written into: a running JVM may have it mapped
    shutil.copy2(libjvm, target)
    say("dumping class data archives")
    java = str(image / "bin" / "java")
    for archive in ("", "-XX:-UseCompressedOops", "-XX:+UseCompactObjectHeaders"):
        run_tool([java, "-Xshare:dump", *([archive] if archive else [])])
    done.touch()


def _build_unpatched(checkout: Checkout) -> Path:
    source = read_source(checkout)
    jdk = find_jdk(source)
    directory = work_directory(checkout)
    objects, image = directory / f"build-{UNPATCHED}", directory / f"jdk-{UNPATCHED}"
    with checkout.locked("jdk"):
        tree = unpack(checkout, source, f".{UNPATCHED}")
        _configure(objects, tree, configuration(checkout, jdk, None, UNPATCHED))
        _make(objects)
        _image(checkout, jdk, tree, objects, image)
    return image


def build_jdk(checkout: Checkout, level: str = "release") -> Path:
    """The copy of the JDK, up to date with the engine and the queue."""
    if level == UNPATCHED:
        return _build_unpatched(checkout)
    source = read_source(checkout)
    jdk = find_jdk(source)
    directory = work_directory(checkout)
    engine = _build_engine(checkout)
    with checkout.locked("jdk"):
        tree = unpack(checkout, source)
        changed = apply(checkout, tree)
        if changed:
            say(f"patched {changed} files of the source")
        objects = directory / f"build-{level}"
        _configure(objects, tree, configuration(checkout, jdk, engine, level))
        archive = engine / "libterrace_lab.a"
        libjvm = _libjvm(objects)
        if libjvm.exists() and archive.stat().st_mtime > libjvm.stat().st_mtime:
            libjvm.unlink()  # make does not know of the engine
            (objects / "hotspot/variant-server/libjvm/libjvm.so").unlink(missing_ok=True)
        _make(objects)
        image = directory / f"jdk-{level}"
        _image(checkout, jdk, tree, objects, image)
    return image
