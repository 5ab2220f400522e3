# SPDX-License-Identifier: MIT OR Apache-2.0
"""From the samples of a process to a profile: equal stacks together."""

import time

from terrace.debug.sampled.frames import Stack
from terrace.debug.sampled.stacks import Reader, Stacks
from terrace.debug.sampled.table import Key, Sample
from terrace.profile.model import Profile, Values


def profile_of(
    reader: Reader,
    samples: dict[Key, Sample],
    peak: bool = False,
    allocated: dict[Key, Sample] | None = None,
) -> Profile:
    """What is in use, or was at the peak; and what was allocated, as its weights say."""
    live = {
        key: reader.newest(key, sample)
        for key, sample in samples.items()
        if (sample.at_peak if peak else sample.is_live)
    }
    stacks: dict[Stack, Values] = {}
    names = Stacks(reader.target)
    for sample, stack in names.named(live.values()):
        more = Values(sample.weight, sample.weight * sample.size)
        stacks.setdefault(stack, Values()).add(more)
    for sample, stack in names.named((allocated or {}).values()):
        more = Values(0, 0, sample.weight, sample.weight * sample.size)
        stacks.setdefault(stack, Values()).add(more)
    return Profile(
        stacks, names.images.regions, reader.period, len(live if allocated is None else allocated),
        time.time_ns(), has_allocated=allocated is not None, at_peak=peak,
        title=reader.target.title, notes=reader.notes(),
    )  # fmt: skip
