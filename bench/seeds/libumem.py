# SPDX-License-Identifier: MIT OR Apache-2.0
"""Experiments of "Per-thread caching in libumem" (Robert Mustacchi): pairs of malloc and free, start-up, md5 sums in node, and
::umastat."""

import argparse

import allocators
import churn
import pair_loops
import startup
import umastat
import whole_loop
from interleave import Subject, preloaded
from report import ROOT, Report


def _of_umem(options: argparse.Namespace) -> list[Subject]:
    """Our object with libumem's names, and what is nearest to libumem before the article."""
    library = (options.build / "libumem_malloc.so.1").resolve()
    if not library.exists():
        return []
    return [preloaded("libumem", library), preloaded("libumem, no cache", library, UMEM_OPTIONS="perthread_cache=0")]


def run(options: argparse.Namespace, page: Report) -> None:
    present: list[Subject] = [*allocators.subjects(options.library, ROOT / "build" / "peers"), *_of_umem(options)]
    page.head("Per-thread caching")
    page.say("The article (illumos, 2012) put a cache of 1 MB per thread before libumem, for its 16 smallest sizes, up to 448 "
             "bytes. What it compared with, a libc with one lock and an allocator with a lock per cpu, glibc can still be made "
             "to be: without its cache per thread (glibc.malloc.tcache_count=0), and with one arena for all threads besides "
             "(arena_max=1). `libumem` is Terrace's libumem_malloc.so; with perthread_cache=0 its cores keep next to nothing.")
    whole_loop.run(options, page, present)
    pair_loops.run(options, page, present)
    startup.run(options, page, present)
    churn.run(options, page, present)
    umastat.run(options, page, present)
