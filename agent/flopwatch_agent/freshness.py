"""How long a sample stands for what is: three of its intervals, and never from a time that has not come."""

from typing import Protocol

STALE_INTERVALS = 3


class Sample(Protocol):
    """What carries the time it was taken at."""

    @property
    def time_seconds(self) -> float:
        """Epoch seconds."""
        ...


def is_fresh(sample: Sample, now: float, interval_seconds: float) -> bool:
    """Whether a sample still holds; a later time than now was taken before the clock was put back."""
    interval = getattr(sample, "interval_seconds", None) or interval_seconds
    age: float = now - sample.time_seconds
    return -interval_seconds <= age <= STALE_INTERVALS * interval
