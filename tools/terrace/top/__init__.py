# SPDX-License-Identifier: MIT OR Apache-2.0
"""`terrace top`: what is live, by class, on a screen that refreshes, or once."""
