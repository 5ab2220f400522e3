# SPDX-License-Identifier: MIT OR Apache-2.0
"""Programs that say themselves what is to happen: messages/, each misuses libumem's interface in a way
that has a message, options/, each looks at what an item of UMEM_OPTIONS does, and life/, each has caches
that come and go beside other work.

A program's first comment has: object (the library, if not umem), UMEM_DEBUG, UMEM_OPTIONS, UMEM_LOGGING,
whether it is to be setuid, whether it needs glibc (stacks), how it ends, and all of what it says on
standard error. %p is an address, %x and %d numbers, "..." any lines; "[record of CACHE, and the
end]" is what a fault of an object with a record says after its first line. With several lines of UMEM_DEBUG it runs once with each, and with
"on every rung" so often; with several of UMEM_OPTIONS, too, and CACHE is what stands behind -> there.
"""

import argparse
import itertools
import os
import re
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

SKIPPED = "skipped"
HERE = Path(__file__).resolve().parent
_RUNGS = ["mm_cid", "cpu_id", "getcpu", "thread"]
_RECORD = re.compile(r"\[record of (\S+), and the end\]")
_OF_RECORD = """buffer=%p  bufctl=%p  cache: {0}
previous transaction on buffer %p:
thread=%d  time=T-%d.%d  slab=%p  cache: {0}
...
umem: heap corruption detected
stack trace:
..."""
_FIELDS = {"%p": "0x[0-9a-f]+", "%x": "[0-9a-f]+", "%d": "[0-9]+"}


@dataclass
class Program:
    source: Path
    library: str = "umem"
    environment: dict[str, str] = field(default_factory=dict)
    debug: list[str] = field(default_factory=list)  # UMEM_DEBUG of each run
    options: list[tuple[str, str]] = field(default_factory=list)  # and UMEM_OPTIONS, with CACHE
    ends: str = "0"
    setuid: bool = False
    glibc: bool = False
    rungs: list[str] = field(default_factory=list)  # TERRACE_RUNG of each run
    says: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, source: Path) -> "Program":
        comment = source.read_text(encoding="utf-8").partition("/*")[2].partition("*/")[0]
        head, _, says = comment.partition("says:")
        says = _RECORD.sub(lambda found: _OF_RECORD.format(found[1]), says)
        program = cls(source, says=[line.strip() for line in says.splitlines() if line.strip()])
        for line in head.splitlines():
            name, _, value = (part.strip() for part in line.partition(":"))
            if name == "object":
                program.library = value
            elif name == "ends":
                program.ends = value
            elif name == "setuid":
                program.setuid = True
            elif name == "on glibc":
                program.glibc = True
            elif name == "on every rung":
                program.rungs = _RUNGS
            elif name == "UMEM_DEBUG":
                program.debug.append(value)
            elif name == "UMEM_OPTIONS":
                words, _, cache = value.partition(" -> ")
                program.options.append((words.strip(), cache))
            elif name.startswith("UMEM_"):
                program.environment[name] = value
        return program

    def pattern(self, cache: str) -> str:
        lines = []
        for line in self.says:
            escaped = re.escape(line.replace("CACHE", cache))
            for field_name, expression in _FIELDS.items():
                escaped = escaped.replace(re.escape(field_name), expression)
            lines.append("(?:.*\n)*?" if line == "..." else escaped + "\n")
        return "".join(lines)


def _set_user(binary: Path, libraries: Path) -> bool:
    """Makes it a program of another user, by whose rights it runs. False: that can not be here."""
    if os.geteuid() != 0 or os.statvfs(binary).f_flag & os.ST_NOSUID:
        return False
    folders = (libraries.resolve(), *libraries.resolve().parents, *binary.parent.parents)
    if not all(folder.stat().st_mode & 0o001 for folder in folders):
        return False
    binary.parent.chmod(0o711)
    os.chown(binary, 65534, 65534)
    binary.chmod(0o4755)
    return True


def _run(
    program: Program, compiler: str, libraries: Path, include: Path, scratch: Path
) -> str | None:
    """What is wrong; None: nothing."""
    binary = scratch / program.source.stem
    subprocess.run(
        [
            *(compiler, "-O1", "-g", "-w", "-fPIC", f"-I{include}"),  # -fPIC: no copies of variables
            *(str(program.source), "-o", str(binary)),
            *(f"-L{libraries}", f"-l{program.library}", f"-Wl,-rpath,{libraries}"),
        ],
        check=True,
    )
    if program.setuid and not _set_user(binary, libraries):
        return SKIPPED
    runs = (program.debug or [None], program.rungs or [None], program.options or [(None, "")])
    for debug, rung, (options, cache) in itertools.product(*runs):
        every = {"UMEM_DEBUG": debug, "TERRACE_RUNG": rung, "UMEM_OPTIONS": options}
        variables = {k: v for k, v in every.items() if v is not None}
        wrong = _run_once(program, binary, variables, cache)
        if wrong is not None:
            return wrong
    return None


def _run_once(
    program: Program, binary: Path, variables: dict[str, str], cache: str
) -> str | None:
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("UMEM_", "TERRACE_"))}
    try:
        done = subprocess.run(
            [str(binary)],
            env={**environment, **program.environment, **variables},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    except subprocess.TimeoutExpired as stuck:
        return f"{variables}: does not end\n{stuck.stderr}"
    expected = -getattr(signal, program.ends) if program.ends[0] == "S" else int(program.ends)
    if done.returncode != expected:
        return f"{variables}: ends with {done.returncode}, not {expected}\n{done.stderr}"
    if not re.fullmatch(program.pattern(cache), done.stderr):
        return f"{variables}: says\n{done.stderr}\nand not\n" + "\n".join(program.says)
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--libraries", type=Path, required=True)
    parser.add_argument("--include", type=Path, required=True)
    parser.add_argument("--compiler", default="cc", help="of C; default: cc")
    parser.add_argument("--programs", default="messages", help="folder; default: messages")
    parser.add_argument("names", nargs="*", help="of programs; default: all")
    arguments = parser.parse_args()
    sources = sorted((HERE / arguments.programs).glob("*.c"))
    failed = 0
    with tempfile.TemporaryDirectory() as scratch:
        for source in sources:
            if arguments.names and source.stem not in arguments.names:
                continue
            program = Program.read(source)
            if program.glibc and arguments.compiler != "cc":
                print(f"{'skipped':7} {source.stem}: there are no stacks")
                continue
            wrong = _run(
                program,
                arguments.compiler,
                arguments.libraries,
                arguments.include,
                Path(scratch),
            )
            if wrong == SKIPPED:
                print(f"{'skipped':7} {source.stem}: needs root, and folders that others may use")
                continue
            print(f"{'ok' if wrong is None else 'FAILED':7} {source.stem}")
            if wrong is not None:
                print(wrong)
                failed += 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
