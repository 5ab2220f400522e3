# SPDX-License-Identifier: MIT OR Apache-2.0
"""Cases: near a limit of memory, little of it is free; a quota of processor time bounds what slots hold."""

import json
import resource
import tempfile

from crowds import group, join
from harness import Failure, Skip

MIB = 1 << 20

# A system whose control groups say what the variables say; of version 2 and of version 1, wherever the process is.
FAKE = """mount -t tmpfs none /sys/fs/cgroup && cd /sys/fs/cgroup && mkdir memory cpu || exit 77
echo "$MEMORY" > memory.max; echo max > memory.high; echo "$MEMORY" > memory/memory.limit_in_bytes
echo "$QUOTA 100000" > cpu.max; echo "$QUOTA" > cpu/cpu.cfs_quota_us; echo 100000 > cpu/cpu.cfs_period_us
LD_PRELOAD="$INSIDE" exec "$@"
"""


def in_fake_groups(h, setting, words, memory="max", quota="-1", **how):
    command = ["unshare", "-m", "sh", "-c", FAKE, "sh", *words]
    how |= {"MEMORY": str(memory), "QUOTA": quota, "preload_variable": "INSIDE"}
    if h.execute(h.glibc(), ["unshare", "-m", "sh", "-c", "mount -t tmpfs none /sys/fs/cgroup"]).returncode != 0:
        raise Skip("no mounts can be made here")
    return h.run(setting, command, **how)


def limited(h, limit, *words):
    return [h.program("limited"), str(limit), *words]


def resident_in_a_container(h):
    """Its own group lies at the top: known from the start."""
    for setting in h.rungs():
        for limit in [64, 128]:
            for shape in ["spike", "growth"]:
                in_fake_groups(h, setting, limited(h, limit, shape), memory=limit * MIB)


def rungs_that_read_again(h):
    """Which takes questions that the others do not ask, and answers that some sandboxes do not give."""
    with open("/proc/self/status", encoding="ascii") as status:
        lines = dict(line.split(":", 1) for line in status.read().splitlines() if ":" in line)
    if lines["Seccomp"].strip() != "0" and lines["NoNewPrivs"].strip() != "0":
        raise Skip("a sandbox in which limits are read once")
    return [setting for setting in h.rungs() if setting.name in ("mm_cid", "cpu_id")]


def resident_when_a_limit_changes(h):
    for setting in rungs_that_read_again(h):
        for name in ["memory.max", "memory/memory.limit_in_bytes"]:
            words = limited(h, 64, "again", f"/sys/fs/cgroup/{name}", "growth")
            try:
                in_fake_groups(h, setting, words, TERRACE_DECAY_MS="20")
                break
            except Failure:  # the other version
                if name != "memory.max":
                    raise


def resident_in_a_control_group(h):
    """Who holds more is killed. The group is not at the top: ticks find it."""
    limit = 256
    for setting in rungs_that_read_again(h):
        with group("memory", limit_in_bytes=limit * MIB) as path:
            h.run(setting, limited(h, limit, "again", "-", "growth"), before_exec=join(path), TERRACE_DECAY_MS="20")


def resident_below_limits_of_addresses(h):
    limit = 80
    for setting in h.rungs():
        for which in [resource.RLIMIT_AS, resource.RLIMIT_DATA]:
            enter = lambda which=which: resource.setrlimit(which, (limit * MIB, limit * MIB))
            h.run(setting, limited(h, limit, "spike"), before_exec=enter)


def budget_below_a_quota(h):
    """Of two slots or more, one is filled."""
    def budget(setting, quota):
        words = limited(h, 1000000, "again", "-", "nothing")
        with tempfile.NamedTemporaryFile() as file:
            in_fake_groups(h, setting, words, quota=quota, TERRACE_DECAY_MS="20", TERRACE_STATS_FILE=file.name)
            statistics = json.load(file)
        if statistics["slots"] < 2:
            raise Skip("one slot")
        return statistics["budget"]

    for setting in rungs_that_read_again(h):
        if budget(setting, "100000") >= budget(setting, "-1"):
            raise Failure(f"{setting.name}: a quota changes nothing")


ALL = [resident_in_a_container, resident_when_a_limit_changes, resident_in_a_control_group, resident_below_limits_of_addresses,
       budget_below_a_quota]
