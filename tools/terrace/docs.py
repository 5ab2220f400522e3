# SPDX-License-Identifier: MIT OR Apache-2.0
"""`terrace docs`: makes the documentation site of the Markdown files and public headers.

Writes build/site. A link to a file or heading that does not exist is an error, and so is a page
that is in no menu. With --serve it shows the site on this machine, and makes it anew when a page
changes. What is on the site is in tools/docs: mkdocs.yml (menus, looks), hooks.py (pages outside of
docs/, sources that pages link to), headers.py (the API).
"""

import argparse
import os
import subprocess
import sys

from terrace.arguments import Commands
from terrace.checkout import Checkout, need_checkout
from terrace.messages import say
from terrace.prepare import prepare

ADDRESS = "127.0.0.1"
CONFIG = "tools/docs/mkdocs.yml"


def _mkdocs(checkout: Checkout, *words: str) -> int:
    # Material tells at each start of its successor, Zensical, unless this is set.
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    config = ["--config-file", str(checkout.root / CONFIG)]
    command = [sys.executable, "-m", "mkdocs", words[0], *config, *words[1:]]
    return subprocess.run(command, env=environment, check=False).returncode


def build(checkout: Checkout) -> int:
    """Exit status 0 when nothing is wrong; mkdocs says what is."""
    status = _mkdocs(checkout, "build", "--strict")
    if status == 0:
        say(f"docs: {checkout.build / 'site' / 'index.html'}; --serve shows it", always=True)
    return status


def serve(checkout: Checkout, port: int) -> int:
    """Until Ctrl-C."""
    return _mkdocs(checkout, "serve", "--dev-addr", f"{ADDRESS}:{port}")


def add_parser(commands: Commands) -> None:
    parser = commands.add_parser(
        "docs",
        help="make the documentation site, and check every link in it",
        description="Writes build/site. A link to a file or heading that does not exist is an "
        "error.",
    )
    parser.add_argument("--serve", action="store_true", help="show it on 127.0.0.1, until Ctrl-C")
    parser.add_argument(
        "--port", type=int, default=8000, metavar="N", help="of --serve (default 8000)"
    )
    parser.set_defaults(act=run)


def run(options: argparse.Namespace, checkout: Checkout | None) -> int:
    """The command."""
    checkout = need_checkout(checkout, "docs")
    prepare(checkout, ("docs",), ("docs",), ("python",))  # nothing is compiled
    return serve(checkout, options.port) if options.serve else build(checkout)
