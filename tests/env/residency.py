# SPDX-License-Identifier: MIT OR Apache-2.0
"""Cases: what stays resident beyond live blocks."""

from harness import Skip


def aligned_blocks_waste_little(h):
    for placement in ["none", "punctuated", "odd", "random"]:
        h.run(h.terrace(TERRACE_PLACEMENT=placement), [h.program("residency"), "aligned"])


def on_every_rung(h, *shapes, **environment):
    for setting in h.rungs():
        for shape in shapes:
            h.run(setting, [h.program("residency"), *shape.split()], **environment)


def at_once_and_later(h, *shapes):
    """By the frees themselves, so that an idle process keeps no more than the bound; and when the process has gone on for ten
    seconds, here with ticks fifty times as often."""
    on_every_rung(h, *shapes)
    on_every_rung(h, *shapes, TERRACE_DECAY_MS="20")


def resident_after_fragmentation(h):
    """The larger of 16 MiB and a quarter of what is live, beyond the pages of live blocks, and at first 48 MiB more."""
    at_once_and_later(h, "islands", "sawtooth", "replaced")


def resident_after_frees_in_random_order(h):
    at_once_and_later(h, "shuffled 48 48", "shuffled 16 300")


def resident_after_a_spike(h):
    at_once_and_later(h, *(f"spike {size} idle" for size in [100, 4000, 100000]))
    on_every_rung(h, "spike 4000 fast")


def resident_after_many_threads(h):
    for setting in h.rungs():
        of_threads = "each" if setting.name == "thread" else "shared"
        h.run(setting, [h.program("residency"), "threads", "1000", of_threads])


def resident_while_it_goes_round(h):
    """Memory that bulky blocks of many sizes need again and again, a little more than the bound."""
    for setting in h.rungs():
        setting.environment["TERRACE_DECAY_MS"] = "1000000"
        h.run(setting, [h.program("residency"), "turns"])


def resident_after_a_task(h):
    for setting in h.rungs():
        h.run(setting, [h.program("pauses"), "4000"])
    for size in ["100", "100000", "1000000"]:
        h.run(h.terrace(), [h.program("pauses"), size])


def resident_after_shrinking(h):
    on_every_rung(h, "shrunk 260000 140000 0", "shrunk 400000 270000 0", "shrunk 400000 270000 4096", "shrunk 3000000 300000 0",
                  "shrunk 600000 100000 10000", "shrunk 6000 2000 0")


def resident_while_locked(h):
    """mlockall: the kernel gives locked pages back only where they are named, or mapped anew; and it puts pages into all it maps."""
    if h.execute(h.terrace(), [h.program("residency"), "locked", "all", "spike", "4000", "idle"]).returncode == 77:
        raise Skip("mlockall is not allowed here")
    shapes = ["locked all spike 1000000 idle", "locked all spike 4000 fast", "locked all untouched", "locked_afterwards"]
    on_every_rung(h, *shapes)
    for how in ["current", "future", "onfault"]:
        for shape in ["spike 1000000 idle", "spike 4000 idle"]:
            h.run(h.terrace(), [h.program("residency"), "locked", how, *shape.split()])


def refused(h, setting, error, calls, words):
    command = [h.program("deny"), error, calls, h.program("residency"), *words.split()]
    result = h.execute(setting, command, preload_variable="DENY_PRELOAD")
    if result.returncode == 77:
        raise Skip("no seccomp here, or mlockall is not allowed")
    h.run(setting, command, preload_variable="DENY_PRELOAD")


def resident_where_giving_back_is_refused(h):
    """What madvise does not take back is mapped anew."""
    for error in ["ENOSYS", "EINVAL", "ENOMEM", "IGNORED"]:
        refused(h, h.terrace(), error, "madvise", "spike 1000000 idle")
    refused(h, h.terrace(), "EPERM", "madvise", "islands")
    for setting in h.rungs():
        refused(h, setting, "EPERM", "madvise,munmap", "spike 4000 fast")


def resident_while_locked_before_linux_5_18(h):
    refused(h, h.terrace(), "EINVAL", "dontneed_locked", "locked current spike 1000000 idle")


def giving_back_faults_nothing_in(h):
    command = [h.program("residency"), "huge_pages"]
    if h.execute(h.terrace(), command).returncode == 77:
        raise Skip("no huge pages here")
    for setting in h.rungs():
        h.run(setting, command)


ALL = [aligned_blocks_waste_little, giving_back_faults_nothing_in, resident_after_fragmentation,
       resident_after_frees_in_random_order, resident_after_a_task, resident_after_shrinking, resident_after_a_spike,
       resident_after_many_threads, resident_while_it_goes_round, resident_while_locked, resident_where_giving_back_is_refused,
       resident_while_locked_before_linux_5_18]
