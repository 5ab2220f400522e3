# SPDX-License-Identifier: MIT OR Apache-2.0
"""Cases about addresses and mappings: which there are, how many, and who else has them."""

import resource

from harness import Skip

MIB = 1 << 20


def limited_addresses(limit):
    return None if limit is None else lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def mappings(h, setting, *arguments):
    command = [h.program("mappings"), *arguments]
    result = h.execute(setting, command)
    if result.returncode == 77:
        raise Skip(f"{' '.join(arguments)}: not possible here")
    h.run(setting, command)


def growing_vectors_leave_no_mappings(h):
    for setting in [h.glibc(), h.terrace()]:
        mappings(h, setting, "vectors")


def as_many_mappings_as_there_may_be(h):
    for setting in [h.glibc(), h.terrace()]:
        mappings(h, setting, "full")


def limits_below_what_is_in_use(h):
    for setting in [h.glibc(), h.terrace()]:
        for which in ["AS", "DATA"]:
            mappings(h, setting, "below_limit", which)


def reservations_behind_the_heap(h):
    for gibibytes in ["1", "2", "100", "1100", "3000"]:
        mappings(h, h.terrace(), "obstacle", gibibytes)


def realloc_where_no_memory_is_left(h):
    for setting in [h.glibc(), *h.rungs()]:
        mappings(h, setting, "no_room")


def writes_to_freed_large_blocks(h):
    mappings(h, h.terrace(), "freed")


def no_place_of_our_choice(h):
    """The heap is where the kernel puts it, within a limit of addresses; realloc copies."""
    for limit in [None, 8000000 << 10, 4096 * MIB, 256 * MIB]:
        for setting in [h.glibc(), h.terrace(), h.terrace("thread")]:
            command = [h.program("no_place"), h.program("workout"), "20", "4" if limit is None else "2"]
            how = {"preload_variable": "NO_PLACE_PRELOAD", "before_exec": limited_addresses(limit)}
            if h.execute(setting, command, **how).returncode == 77:
                raise Skip("no seccomp here")
            h.run(setting, command, **how)
    h.run(h.terrace(), [h.program("no_place"), h.program("mappings"), "vectors"], preload_variable="NO_PLACE_PRELOAD")


def refused_and_given_back_at_a_limit(h):
    for setting in h.rungs():
        h.run(setting, [h.program("refused")])


ALL = [growing_vectors_leave_no_mappings, as_many_mappings_as_there_may_be, limits_below_what_is_in_use, reservations_behind_the_heap,
       realloc_where_no_memory_is_left, refused_and_given_back_at_a_limit, writes_to_freed_large_blocks, no_place_of_our_choice]
