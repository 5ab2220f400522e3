# SPDX-License-Identifier: MIT OR Apache-2.0
"""`terrace jdk test --suite code`: with the flag off, what allocates is the machine code of stock.

What the interpreter, C1's and C2's code and their stubs for the way into the VM consist of is
printed by both JVMs, and compared instruction by instruction. Numbers are masked: addresses, and
offsets in the thread, differ between two builds.
"""

import platform
import re
import tempfile
from itertools import product
from pathlib import Path

from terrace.captured import run_tool
from terrace.errors import TerraceError
from terrace.jdk.programs import COLLECTORS
from terrace.jdk.session import FAILED, PASSED, STOCK, Session, Suite
from terrace.jdk.source import integration

_COMPILERS = {"C1": "-XX:TieredStopAtLevel=1", "C2": "-XX:-TieredCompilation"}
_FLAGS = (
    *("-Xbatch", "-Xmx256m", "-XX:+UnlockDiagnosticVMOptions", "-XX:+PrintInterpreter"),
    *("-XX:+PrintStubCode", "-XX:CompileCommand=quiet", "-XX:CompileCommand=print,Code::make*"),
)
# The line before a piece of code: of the interpreter, of a stub, of a method.
_HEADS = re.compile(
    r"^(?:(?P<bytecode>new|newarray|anewarray) +\d+ "
    r"|Decoding RuntimeStub - (?P<stub>C[12] Runtime (?:fast_)?new_\w+) "
    r"|Compiled method \(c[12]\).* (?P<method>Code::make\w+) )"
)


def pieces(text: str) -> dict[str, bytes]:
    """The bytes of each piece of code that creates objects, by its name."""
    found: dict[str, bytes] = {}
    name, inside = "", False
    for line in text.splitlines():
        head = _HEADS.match(line)
        if head:
            name = next(part for part in head.groups() if part)
        elif line == "[MachCode]":
            inside = True
        elif line == "[/MachCode]":
            name, inside = "", False
        elif inside and name and (row := re.match(r"  0x\w+: +([0-9a-f |]+)$", line)):
            words = row.group(1).replace("|", " ").split()
            found[name] = found.get(name, b"") + bytes.fromhex("".join(words))
    return found


def instructions(code: bytes) -> list[str]:
    """Without their numbers."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(code)
        file.flush()
        how = ("-D", "-b", "binary", "-m", "i386:x86-64", "-M", "intel", "--no-show-raw-insn")
        text = run_tool(["objdump", *how, file.name])
    rows = re.findall(r"^ +[0-9a-f]+:\t(.*)$", text, re.MULTILINE)
    return [re.sub(r"0x[0-9a-f]+", "N", row.partition("#")[0]).strip() for row in rows]


def _printed(jdk: Path, flags: tuple[str, ...], classes: Path) -> dict[str, bytes]:
    command = [str(jdk / "bin" / "java"), *_FLAGS, *flags, "-cp", str(classes), "Code"]
    return pieces(run_tool(command))


def _check_complete(printed: dict[str, bytes]) -> None:
    """Of the interpreter, of stubs and of methods."""
    kinds = {"new", "newarray", "anewarray", "Code::makeInstance", "Code::makeNumbers"}
    stubs = [name for name in printed if "Runtime" in name]
    if not stubs or not kinds <= printed.keys():
        raise TerraceError("the JVM printed no machine code, or in another form than that of 25")


def difference(one: list[str], other: list[str]) -> str:
    """The first instruction that is another, "" if there is none."""
    for place, (expected, found) in enumerate(zip(one, other, strict=False)):
        if expected != found:
            return f"instruction {place} is '{found}', not '{expected}'"
    return "" if len(one) == len(other) else f"{len(other)} instructions, not {len(one)}"


def run(session: Session) -> Suite:
    """Each piece of code, for each collector and compiler, with the flag off."""
    if platform.machine() != "x86_64":
        raise TerraceError("the suite code reads the instructions of x86-64 only")
    suite = Suite("code", session.level)
    with tempfile.TemporaryDirectory() as scratch:
        classes = Path(scratch)
        source = integration(session.checkout) / "programs" / "Code.java"
        run_tool([str(session.stock / "bin" / "javac"), "-d", scratch, str(source)])
        for collector, (compiler, flag) in product(COLLECTORS, _COMPILERS.items()):
            flags = (f"-XX:+Use{collector}GC", flag)
            expected = _printed(session.stock, flags, classes)
            found = _printed(session.image, flags, classes)
            _check_complete(expected)
            for name in sorted(expected):
                test = f"{name}, {compiler}, {collector}"
                other = instructions(found.get(name, b""))
                wrong = difference(instructions(expected[name]), other)
                if wrong:
                    print(f"FAILED  {test}: {wrong}", flush=True)
                suite.put(STOCK, test, PASSED)
                suite.put("off", test, FAILED if wrong else PASSED)
    suite.print_counts()
    return suite
