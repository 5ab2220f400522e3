# SPDX-License-Identifier: MIT OR Apache-2.0
"""`python3 -m terrace`, and what the `terrace` script of a checkout starts by path."""

import os.path
import sys

if not __package__:
    # Started by path with -I: nothing has put the package's parent on the module path.
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.realpath(__file__))))

from terrace.cli import main

if __name__ == "__main__":
    sys.exit(main())
