# SPDX-License-Identifier: MIT OR Apache-2.0
"""`terrace release`: whether this checkout can be released, and what it would be made of."""
