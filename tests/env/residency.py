# SPDX-License-Identifier: MIT OR Apache-2.0
"""Cases: what stays resident beyond live blocks."""

from harness import Skip


def aligned_blocks_waste_little(h):
    for placement in ["none", "punctuated", "odd", "random"]:
        h.run(h.terrace(TERRACE_PLACEMENT=placement), [h.program("residency"), "aligned"])


def on_every_rung(h, *shapes):
    for setting in h.rungs():
        for shape in shapes:
            h.run(setting, [h.program("residency"), *shape.split()])


def resident_after_fragmentation(h):
    """The larger of 16 MiB and a quarter of what is live, beyond the pages of live blocks."""
    on_every_rung(h, "islands", "sawtooth", "replaced")


def resident_after_frees_in_random_order(h):
    on_every_rung(h, "shuffled 48 48", "shuffled 16 300")


def resident_after_a_spike(h):
    """By the frees themselves: no time has to pass and nobody has to call again, so an idle process is no worse than a busy one."""
    on_every_rung(h, *(f"spike {size} {after}" for size in [100, 4000, 100000] for after in ["idle", "fast", "busier"]))


def resident_after_many_threads(h):
    for setting in h.rungs():
        of_threads = "each" if setting.name == "thread" else "shared"
        h.run(setting, [h.program("residency"), "threads", "1000", of_threads])


def resident_while_it_goes_round(h):
    """Memory that bulky blocks of many sizes need again and again, a little more than the bound."""
    for setting in h.rungs():
        setting.environment["TERRACE_DECAY_MS"] = "1000000"
        h.run(setting, [h.program("residency"), "turns"])


def resident_after_shrinking(h):
    on_every_rung(h, "shrunk 260000 140000 0", "shrunk 400000 270000 0", "shrunk 400000 270000 4096", "shrunk 3000000 300000 0",
                  "shrunk 600000 100000 10000", "shrunk 6000 2000 0")


def giving_back_faults_nothing_in(h):
    command = [h.program("residency"), "huge_pages"]
    if h.execute(h.terrace(), command).returncode == 77:
        raise Skip("no huge pages here")
    for setting in h.rungs():
        h.run(setting, command)


ALL = [aligned_blocks_waste_little, giving_back_faults_nothing_in, resident_after_fragmentation,
       resident_after_frees_in_random_order, resident_after_shrinking, resident_after_a_spike, resident_after_many_threads,
       resident_while_it_goes_round]
