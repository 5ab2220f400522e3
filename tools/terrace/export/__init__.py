# SPDX-License-Identifier: MIT OR Apache-2.0
"""`terrace export`: what processes hold, as metrics of Prometheus."""
