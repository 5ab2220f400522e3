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
    seen: dict[Key, Sample] | None = None,
) -> Profile:
    """What is in use, or was at the peak; with `seen` also what was allocated while one looked."""
    counted = {k: s for k, s in samples.items() if (s.at_peak if peak else s.is_live)}
    every = {**(seen or {}), **counted}
    stacks: dict[Stack, Values] = {}
    names = Stacks(reader.target)
    for key, (sample, stack) in zip(every, names.named(every.values()), strict=True):
        size = sample.weight * sample.size
        values = stacks.setdefault(stack, Values())
        if key in counted:
            values.add(Values(sample.weight, size))
        if seen is not None and key in seen:
            values.add(Values(0, 0, sample.weight, size))
    regions = dict.fromkeys(
        place.region for stack in stacks for place in stack if place.region is not None
    )
    return Profile(
        stacks, list(regions), reader.period, len(every), time.time_ns(),
        has_allocated=seen is not None, at_peak=peak, title=reader.target.title,
        notes=reader.notes(),
    )  # fmt: skip
