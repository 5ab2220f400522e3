# SPDX-License-Identifier: MIT OR Apache-2.0
"""`terrace export`: its words. What it needs is not loaded before it is called."""

import argparse
import sys
from pathlib import Path

from terrace.arguments import Commands
from terrace.checkout import Checkout
from terrace.debug.command_line import MODULES
from terrace.errors import TerraceError
from terrace.prepare import need_modules

_LISTEN = "127.0.0.1:9696"


def add_parser(commands: Commands) -> None:
    parser = commands.add_parser(
        "export",
        help="what processes hold, as metrics for Prometheus",
        description="Reads processes whenever somebody asks; nothing is stopped, and nothing is "
        "changed in them. Ends with Ctrl-C.",
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--pid", type=int, metavar="PID", help="one process, until it ends")
    which.add_argument(
        "--match", metavar="NAME", help="all of this name, also those that start later"
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--listen", metavar="ADDRESS:PORT", default=_LISTEN,
        help=f"serve http://ADDRESS:PORT/metrics (default: {_LISTEN})",
    )  # fmt: skip
    where.add_argument(
        "--textfile", metavar="FILE.prom", type=Path,
        help="write them there once (-: print them), for node_exporter's collector of text files",
    )  # fmt: skip
    where.add_argument(
        "--dashboard", action="store_true", help="print a dashboard of Grafana for them"
    )
    parser.add_argument(
        "--sites", type=int, metavar="N", default=10,
        help="of a process that samples, the N lines of code that hold most (default: 10)",
    )  # fmt: skip
    parser.set_defaults(act=act)


def act(options: argparse.Namespace, checkout: Checkout | None) -> int:
    """The command."""
    if options.dashboard:
        text = Path(__file__).with_name("dashboard.json").read_text(encoding="utf-8")
        sys.stdout.write(text)
        return 0
    if options.pid is None and options.match is None:
        raise TerraceError("export: name a process by --pid PID, or several by --match NAME", 2)
    modules = {**MODULES, "psutil": "psutil", "prometheus_client": "prometheus_client"}
    need_modules("export", modules, ("debug", "export"), checkout)
    from terrace.export.command import run

    return run(options)
