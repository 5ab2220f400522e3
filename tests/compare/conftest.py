# SPDX-License-Identifier: MIT OR Apache-2.0
"""The modules of the comparison are where its driver finds them."""

import made_up  # noqa: F401  (sets the path)
