# SPDX-License-Identifier: MIT OR Apache-2.0
"""`terrace package`: what others install, each made by its ecosystem's own tool (packaging)."""
