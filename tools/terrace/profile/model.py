# SPDX-License-Identifier: MIT OR Apache-2.0
"""A profile: stacks with names, and how many blocks and bytes each stands for."""

from dataclasses import dataclass, field

from terrace.debug.sampled.frames import Region, Stack
from terrace.messages import count
from terrace.report.cells import human_bytes


@dataclass
class Values:
    """Unsampled: what the sampled blocks stand for."""

    objects: float = 0
    bytes: float = 0
    allocated_objects: float = 0
    allocated_bytes: float = 0

    def add(self, other: "Values", sign: int = 1) -> None:
        self.objects += sign * other.objects
        self.bytes += sign * other.bytes
        self.allocated_objects += sign * other.allocated_objects
        self.allocated_bytes += sign * other.allocated_bytes


@dataclass
class Profile:
    """What was live, or live at the peak; with `has_allocated` also what was allocated."""

    stacks: dict[Stack, Values]
    regions: list[Region] = field(default_factory=list)
    period: int = 0  # mean bytes between samples
    samples: int = 0
    time: int = 0  # nanoseconds since 1970
    duration: int = 0  # nanoseconds
    has_allocated: bool = False
    show_allocated: bool = False  # rather than what is live
    at_peak: bool = False
    title: str = ""
    notes: list[str] = field(default_factory=list)

    def shown(self, values: Values) -> tuple[float, float]:
        """Objects and bytes of what the reader asked for."""
        if self.show_allocated:
            return values.allocated_objects, values.allocated_bytes
        return values.objects, values.bytes

    @property
    def total(self) -> Values:
        total = Values()
        for values in self.stacks.values():
            total.add(values)
        return total

    @property
    def what(self) -> str:
        if self.show_allocated:
            return "allocated"
        return "in use at the peak" if self.at_peak else "in use"

    def summary(self) -> str:
        """One line: how much, and how that is known."""
        objects, size = self.shown(self.total)
        blocks = count(round(objects), "block")
        text = f"{self.title}: {human_bytes(round(size))} in {blocks} {self.what}"
        if self.period and self.samples:
            sampled = f"{count(self.samples, 'sample')}, one in {human_bytes(self.period)}"
            text += f", estimated from {sampled}"
        return text
