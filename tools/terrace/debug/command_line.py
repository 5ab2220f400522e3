# SPDX-License-Identifier: MIT OR Apache-2.0
"""`terrace findleaks`, `whatis`, `umastat`, `verify`, `umausers`, `umem`: their words.

What they need is not loaded before one of them is called: numpy takes its time.
"""

import argparse

from terrace.arguments import DEBUGGER, Commands
from terrace.checkout import Checkout
from terrace.prepare import need_modules

_TARGET = "a process's number, or a core file"
MODULES = {"numpy": "numpy", "scipy": "scipy", "elftools": "pyelftools", "rich": "rich"}


def add_parser(commands: Commands) -> None:
    findleaks = commands.add_parser(
        "findleaks",
        help="list the blocks that a process, or the one that left a core file, can not reach",
        description="Marks from the program's data, stacks and registers, and lists what was "
        "allocated and is not reached. The process stands still while its memory is copied.",
    )
    findleaks.add_argument("--all", action="store_true", help="all groups of leaked blocks")
    findleaks.add_argument(
        "--through", metavar="FUNCTION", help="only what it allocated: under UMEM_DEBUG=audit"
    )
    whatis = commands.add_parser(
        "whatis",
        help="say what an address is: allocated or freed, of which size, where it waits",
        description="Says what lies at an address of the process.",
    )
    commands.add_parser(
        "umastat",
        help="a table of size classes: in use, held by each level, memory, allocations",
        description="Reads the process as it runs; nothing is stopped.",
    )
    commands.add_parser(
        "verify",
        help="look whether the heap is consistent: magazines, slabs, page map",
        description="Exit status 1 when a fault was found. The process stands still for a copy.",
    )
    umausers = commands.add_parser(
        "umausers",
        help="who has allocated the objects in use, where UMEM_DEBUG=audit is on",
        description="Groups objects in use by stack and size. Shown are groups of 8 KiB or of 100 "
        "objects.",
    )
    umausers.add_argument("-e", dest="every", action="store_true", help="all groups")
    umausers.add_argument("-f", dest="full", action="store_true", help="each object, too")
    umem = commands.add_parser(
        "umem",
        help="a command of libumem's debugger: umem_status, umem_cache, bufctl, vmem, walk, ...",
        description="Names, columns and meaning are those of the debugger's commands on libumem. "
        "Without COMMAND they are listed. Addresses are in hexadecimal.",
    )
    for name in DEBUGGER:
        parser = commands.choices[name]
        parser.add_argument("target", metavar="PID|CORE", help=_TARGET)
        parser.set_defaults(act=act)
    whatis.add_argument("address", metavar="ADDRESS", help="in hexadecimal")
    umausers.add_argument("caches", metavar="CACHE", nargs="*", help="only of these")
    umem.add_argument(
        "words", metavar="COMMAND ...", nargs=argparse.REMAINDER, help="and what it takes"
    )


def act(options: argparse.Namespace, checkout: Checkout | None) -> int:
    """The commands."""
    need_modules(options.subcommand, MODULES, ("debug",), checkout)
    from terrace.debug.commands import run

    return run(options)
