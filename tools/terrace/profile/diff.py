# SPDX-License-Identifier: MIT OR Apache-2.0
"""What grew, and what shrank, from one profile to another."""

from dataclasses import replace

from terrace.debug.sampled.frames import Line, Stack, lines_of
from terrace.profile.model import Profile, Values


def _key(stack: Stack) -> tuple[Line, ...]:
    """Addresses differ from process to process, names and lines do not."""
    return tuple(lines_of(stack))


def difference(before: Profile, after: Profile) -> Profile:
    """`after` less `before`; stacks that are equal in both are left out."""
    stacks: dict[tuple[Line, ...], tuple[Stack, Values]] = {}
    for profile, sign in ((after, 1), (before, -1)):
        for stack, values in profile.stacks.items():
            stacks.setdefault(_key(stack), (stack, Values()))[1].add(values, sign)
    changed = {stack: values for stack, values in stacks.values() if values != Values()}
    regions = dict.fromkeys((*after.regions, *before.regions))
    return replace(
        after, stacks=changed, regions=list(regions), has_allocated=before.has_allocated
        and after.has_allocated, duration=max(after.time - before.time, 0),
        title=f"{before.title} to {after.title}",
    )  # fmt: skip
