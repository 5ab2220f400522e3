# SPDX-License-Identifier: MIT OR Apache-2.0
"""Experiments of "Per-thread caching in libumem" (Robert Mustacchi): pairs of malloc and free, start-up, and md5 sums in node."""

from __future__ import annotations

import argparse

import allocators
import churn
import pair_loops
import startup
from interleave import Subject
from page import Page
from report import ROOT


def run(options: argparse.Namespace, page: Page) -> None:
    present: list[Subject] = allocators.subjects(options.library, ROOT / "build" / "peers")
    page.head("Per-thread caching")
    page.say("The article (illumos, 2012) put a cache of 1 MB per thread before libumem, for its 16 smallest sizes, up to 448 "
             "bytes. What it compared with, a libc with one lock and an allocator with a lock per cpu, glibc can still be made "
             "to be: without its cache per thread (glibc.malloc.tcache_count=0), and with one arena for all threads besides "
             "(arena_max=1).")
    pair_loops.run(options, page, present)
    startup.run(options, page, present)
    churn.run(options, page, present)
