# SPDX-License-Identifier: MIT OR Apache-2.0
"""What is compared: each quantity with its unit, its name, and the size below which it does not matter."""

from dataclasses import dataclass

from store import LATENCY, WORK


@dataclass(frozen=True)
class Metric:
    """Less is better for all of them. The floor is what a ratio takes for anything smaller."""

    key: str  # of Values
    title: str
    unit: str
    floor: float
    help: str
    kind: str = WORK

    def text(self, value: float) -> str:
        """A value as people read it."""
        if self.unit == "s":
            return f"{value:.2f} s" if value >= 1 else f"{value * 1e3:.3g} ms"
        if self.unit == "bytes":
            return f"{value / 2**20:,.1f} MiB"
        return f"{value:,.0f} {self.unit}".rstrip()


TIME = Metric("seconds", "time", "s", 1e-6, "wall-clock time of the work")
CPU = Metric("cpu_seconds", "CPU time", "s", 1e-3, "time on processors, of all threads together, in user mode and in the kernel")
PEAK = Metric("peak_rss", "peak memory", "bytes", 4096, "the most memory that was resident at any time (peak RSS)")
SETTLED = Metric(
    "settled_rss",
    "settled memory",
    "bytes",
    4096,
    "memory still resident a second after everything was freed (of servers: after the load)",
)
FAULTS = Metric("faults", "page faults", "", 100, "how often the kernel had to supply a page; fewer than 100 count as 100")

WORK_METRICS = (TIME, CPU, PEAK, SETTLED, FAULTS)


def _latency(call: str, digits: str, title: str) -> Metric:
    told = f"{title} % of the calls of {call} took at most this long"
    return Metric(f"{call}_p{digits}", f"{call} {title} %", "ns", 1, told, LATENCY)


PERCENTILES = (("50", "50"), ("99", "99"), ("999", "99.9"))
CALLS = ("malloc", "free")
LATENCY_METRICS = tuple(_latency(call, digits, title) for call in CALLS for digits, title in PERCENTILES)
METRICS = (*WORK_METRICS, *LATENCY_METRICS)
BY_KEY = {metric.key: metric for metric in METRICS}
