# SPDX-License-Identifier: MIT OR Apache-2.0
"""The part of HotSpot that the patches touch: unpacked, its generated headers made, files compiled.

The JDK's own build makes these headers with a JDK of the version before, and compiles all of
libjvm. Any JDK can run the generators, and g++ finds what is wrong in a file in a second.
"""

import platform
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from terrace.jdk import source as jdk_source
from terrace.checkout import Checkout
from terrace.captured import run_tool

# What the generators and the compiler read, beside the files of the queue.
_NEEDED = (
    "src/hotspot/cpu",
    "src/hotspot/os",
    "src/hotspot/os_cpu",
    "src/hotspot/share",
    "src/java.base/share/native/include",
    "src/java.base/share/native/libjimage",
    "src/java.base/unix/native/include",
    "make/src/classes/build/tools/jfr",
)

# As make/hotspot/lib/JvmFlags.gmk and the configure script have them, for GCC on Linux.
_COMMON = (
    *("-std=c++14", "-fno-rtti", "-fno-exceptions", "-fno-strict-aliasing", "-fno-lifetime-dse"),
    *("-fPIC", "-fvisibility=hidden", "-fno-omit-frame-pointer", "-w"),
    *("-D__STDC_FORMAT_MACROS", "-D__STDC_LIMIT_MACROS", "-D__STDC_CONSTANT_MACROS"),
    *("-D_GNU_SOURCE", "-D_REENTRANT", "-D_FILE_OFFSET_BITS=64", "-DLIBC=gnu", "-DLINUX"),
    *("-DVM_LITTLE_ENDIAN", "-D_LP64=1", "-DTARGET_COMPILER_gcc", "-DCOMPILER1", "-DCOMPILER2"),
    *("-DINCLUDE_SUFFIX_OS=_linux", "-DINCLUDE_SUFFIX_COMPILER=_gcc", "-DINCLUDE_JVMCI=0"),
    *("-DINCLUDE_EPSILONGC=0", "-DINCLUDE_ZGC=0", "-DINCLUDE_SHENANDOAHGC=0"),
)
RELEASE = ("-DNDEBUG", "-DPRODUCT")
ASSERTIONS = ("-DASSERT",)


@dataclass(frozen=True)
class Machine:
    """What HotSpot calls a processor, and the compiler for it."""

    cpu: str  # the directory
    define: str
    library: str  # HOTSPOT_LIB_ARCH
    name: str  # of the kernel's uname
    descriptions: tuple[str, ...]  # of the instructions, for C2

    @property
    def is_this_one(self) -> bool:
        return platform.machine() == self.name

    @property
    def compiler(self) -> str:
        return "g++" if self.is_this_one else f"{self.name}-linux-gnu-g++"


X86 = Machine("x86", "AMD64", "amd64", "x86_64", ("x86_64", "x86", "gc/g1/g1_x86_64"))
AARCH64 = Machine(
    "aarch64", "AARCH64", "aarch64", "aarch64", ("aarch64", "aarch64_vector", "gc/g1/g1_aarch64")
)


def unpack_part(checkout: Checkout, names: list[str]) -> Path:
    """What is needed of the source, the files `names` among it; unpacked once."""
    source = jdk_source.read_source(checkout)
    tree = jdk_source.work_directory(checkout) / "part" / source.unpacked
    note = tree.with_name("unpacked")
    others = sorted(n for n in names if not n.startswith(tuple(f"{d}/" for d in _NEEDED)))
    wanted = "\n".join([source.sha256, *_NEEDED, *others])
    if note.exists() and note.read_text() == wanted:
        return tree
    archive = jdk_source.fetch(checkout, source)
    shutil.rmtree(tree.parent, ignore_errors=True)
    tree.parent.mkdir(parents=True)
    members = [f"{source.unpacked}/{name}" for name in (*_NEEDED, *others)]
    unpacking = ["tar", "--no-same-owner", "-xf", str(archive), "-C", str(tree.parent)]
    run_tool([*unpacking, *members])
    note.write_text(wanted)
    return tree


def _java(classes: Path, main: str, *words: str) -> None:
    run_tool(["java", "-cp", str(classes), main, *words])


def _make_jvmti(tree: Path, classes: Path, generated: Path) -> None:
    prims = tree / "src/hotspot/share/prims"
    for name, style in (("jvmti.h", "jvmtiH.xsl"), ("jvmtiEnv.hpp", "jvmtiHpp.xsl")):
        out = generated / "jvmtifiles" / name
        paths = ("-IN", prims / "jvmti.xml", "-XSL", prims / style, "-OUT", out)
        _java(classes, "jvmtiGen", *map(str, paths), "-PARAM", "majorversion", "25")


def _make_jfr(tree: Path, classes: Path, generated: Path) -> None:
    metadata = tree / "src/hotspot/share/jfr/metadata"
    main = "build.tools.jfr.GenerateJfrFiles"
    words = ("--xml", metadata / "metadata.xml", "--xsd", metadata / "metadata.xsd")
    out = ("--output", str(generated / "jfrfiles"))
    _java(classes, main, "--mode", "headers", *map(str, words), *out)


def make_java_headers(tree: Path, generated: Path) -> None:
    """JVMTI's and JFR's, and the version of class files."""
    classes = generated / "classes"
    for name in ("jvmtifiles", "jfrfiles", "jni", "classes"):
        (generated / name).mkdir(parents=True)
    sources = (
        "src/hotspot/share/prims/jvmtiGen.java",
        "make/src/classes/build/tools/jfr/GenerateJfrFiles.java",
    )
    run_tool(["javac", "-nowarn", "-d", str(classes), *(str(tree / name) for name in sources)])
    _make_jvmti(tree, classes, generated)
    _make_jfr(tree, classes, generated)
    template = tree / "src/java.base/share/native/include/classfile_constants.h.template"
    text = template.read_text().replace("@@VERSION_CLASSFILE_MAJOR@@", "69")
    text = text.replace("@@VERSION_CLASSFILE_MINOR@@", "0")
    (generated / "jni" / "classfile_constants.h").write_text(text)


def _build_adlc(tree: Path, machine: Machine, directory: Path) -> Path:
    """C2's compiler of instruction descriptions, which runs on this machine."""
    share = tree / "src/hotspot/share"
    sources = [*sorted((share / "adlc").glob("*.cpp")), share / "opto/opcodes.cpp"]
    program = directory / "adlc"
    defines = ("-DLINUX", "-DASSERT", f"-D{machine.define}", "-D_LP64=1")
    words = ("-std=c++14", "-w", "-fno-exceptions", *defines, f"-I{share}", "-o", str(program))
    run_tool(["g++", *words, *map(str, sources)])
    return program


def make_instructions(tree: Path, machine: Machine, generated: Path) -> None:
    """What C2's sources include of the processor's instructions."""
    target = generated / "adfiles"
    target.mkdir()
    cpu = tree / "src/hotspot/cpu" / machine.cpu
    texts = [(cpu / f"{name}.ad").read_text() for name in machine.descriptions]
    together = generated / "all.ad"
    together.write_text("".join(texts))
    out = {
        "-c": f"ad_{machine.cpu}.cpp",
        "-h": f"ad_{machine.cpu}.hpp",
        "-a": f"dfa_{machine.cpu}.cpp",
        "-v": f"adGlobals_{machine.cpu}.hpp",
    }
    flags = ("-q", "-T", "-DLINUX=1", "-D_GNU_SOURCE=1", f"-D{machine.define}=1", "-D_LP64=1")
    adlc = _build_adlc(tree, machine, generated)
    files = (f"{option}{target / name}" for option, name in out.items())
    run_tool([str(adlc), *flags, *RELEASE, str(together), *files])


@dataclass(frozen=True)
class Compiler:
    """Compiles files of a patched tree for one machine."""

    checkout: Checkout
    tree: Path
    generated: Path
    machine: Machine

    def _command(self, level: tuple[str, ...]) -> list[str]:
        hotspot, cpu = self.tree / "src/hotspot", self.machine.cpu
        include = (
            self.generated,
            *(self.generated / name for name in ("adfiles", "jvmtifiles", "jni")),
            *(hotspot / name for name in ("share", "os/linux", "os/posix", f"cpu/{cpu}")),
            hotspot / f"os_cpu/linux_{cpu}",
            *(hotspot / name for name in ("share/include", "os/posix/include")),
            *(self.tree / f"src/java.base/{s}/native/include" for s in ("unix", "share")),
            self.tree / "src/java.base/share/native/libjimage",
            self.checkout.root / "include",
        )
        return [
            *(self.machine.compiler, *_COMMON, *level),
            *(f"-D{self.machine.define}", f"-DTARGET_ARCH_{cpu}", f"-DINCLUDE_SUFFIX_CPU=_{cpu}"),
            f'-DHOTSPOT_LIB_ARCH="{self.machine.library}"',
            *(f"-I{path}" for path in include),
        ]

    def _syntax(self, source: Path, level: tuple[str, ...], note: str) -> str:
        included = ("-MMD", "-MF", str(self.generated / f"{note}.d"))
        command = [*self._command(level), *included, "-fsyntax-only", "-x", "c++", str(source)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.stderr or f"exit status {done.returncode}" if done.returncode else ""

    def check(self, name: str, level: tuple[str, ...]) -> str:
        """What the compiler says of a file of the tree; "" if it is content."""
        return self._syntax(self.tree / name, level, f"{name.replace('/', '-')}{level[0]}")

    def check_together(self, names: Sequence[str], level: tuple[str, ...]) -> str:
        """The same of several files, as one source: nearly all of the time goes into their headers.

        Names of two files may clash, so each is checked alone where that fails.
        """
        together = self.generated / f"{names[0].replace('/', '-')}{level[0]}-together.cpp"
        together.write_text("".join(f'#include "{self.tree / name}"\n' for name in names))
        if not self._syntax(together, level, together.name):
            return ""
        return next(filter(None, (self.check(name, level) for name in names)), "")

    def headers(self) -> set[str]:
        """The tree's files that were included by what was checked."""
        below = f"{self.tree}/"
        words = (word for note in self.generated.glob("*.d") for word in note.read_text().split())
        return {word.removeprefix(below) for word in words if word.startswith(below)}

    def object(self, name: str, target: Path) -> None:
        """An object file, as release builds have it."""
        run_tool([*self._command(RELEASE), "-O1", "-c", "-o", str(target), str(self.tree / name)])


def symbols(file: Path, undefined: bool) -> set[str]:
    """Names of an object's or an archive's global symbols."""
    which = "--undefined-only" if undefined else "--defined-only"
    text = run_tool(["nm", "--extern-only", "--format=posix", which, str(file)])
    return {line.split()[0] for line in text.splitlines() if len(line.split()) > 1}
