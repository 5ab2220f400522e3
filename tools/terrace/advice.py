# SPDX-License-Identifier: MIT OR Apache-2.0
"""What `terrace doctor` tells a person to do, or to know, of a machine as it is."""

import os
from typing import Any

Facts = dict[str, Any]

_MM_CID_END = 28  # bytes of the rseq area that must be registered for mm_cid to be in it


def _rung_advice(machine: Facts, default: dict[str, Any]) -> list[str]:
    rung = default.get("rung")
    rseq = machine["rseq"]
    if os.environ.get("TERRACE_RUNG"):
        return ["TERRACE_RUNG is set: without it the best rung that works is chosen."]
    if rseq["switched_off"]:
        return [
            "GLIBC_TUNABLES switches glibc's rseq off (glibc.pthread.rseq=0): Terrace leaves rseq to "
            "the program. If that does not use it either, TERRACE_RUNG=mm_cid has Terrace "
            "register an area of its own, which is faster."
        ]
    if rung == "cpu_id":
        # A glibc that registers 20 bytes still gets mm_cid where the kernel's area is larger.
        if rseq["kernel_feature_size"] >= _MM_CID_END:
            return []
        return [
            "Linux 6.3 or newer numbers slots densely (mm_cid): "
            "less memory in a small container on a big machine."
        ]
    if rung in ("getcpu", "thread"):
        advice = [
            "No restartable sequences: every allocation takes a lock or stays with its thread, "
            "which is slower."
        ]
        if not rseq["kernel_feature_size"] and not rseq["libc_size"]:
            advice.append(
                "A sandbox (seccomp, gVisor), an emulator or a kernel before 4.18 refuses rseq(2)."
            )
        return advice
    return []


def _memory_advice(machine: Facts) -> list[str]:
    advice = []
    if machine["limits"]["address_space"] is not None:
        advice.append("RLIMIT_AS is set: Terrace reserves less address space at a time.")
    if machine["limits"]["data"] is not None:
        advice.append(
            "RLIMIT_DATA is set and counts private mappings: allocations fail when it is reached."
        )
    if machine["overcommit"] == "2":
        advice.append("overcommit_memory is 2: Terrace reserves less address space at a time.")
    if machine["transparent_huge_pages"] == "always":
        advice.append(
            "Transparent huge pages are always on: resident memory looks larger than it is; "
            "compare with `madvise` before blaming the allocator."
        )
    return advice


def _processor_advice(machine: Facts) -> list[str]:
    advice = []
    topology = machine["topology"]
    if topology["cpus_allowed"] < topology["cpus_online"]:
        advice.append(
            f"This process may use {topology['cpus_allowed']} of {topology['cpus_online']} CPUs; "
            "with mm_cid there are no more slots in use than that."
        )
    quota = machine["cgroup"]["cpus"]
    if quota is not None and quota < topology["cpus_allowed"]:
        advice.append(
            f"The cgroup grants the time of {quota:g} CPUs: "
            "expect more interrupted sequences when it is used up."
        )
    return advice


def advise(machine: Facts, default: dict[str, Any]) -> list[str]:
    """What a person could do or should know; empty when there is nothing to say."""
    if not default["works"]:
        return ["Programs do not run on Terrace here: see the message above."]
    return _rung_advice(machine, default) + _memory_advice(machine) + _processor_advice(machine)
