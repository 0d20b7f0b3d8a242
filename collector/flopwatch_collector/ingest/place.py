"""Where and when a batch was made, on the collector's clock."""

from dataclasses import dataclass

SKEW_SECONDS = 2.0
OLDEST_SECONDS = 400 * 86_400.0
"""Nothing is spooled for so long: a time further back is that of a clock that is not set."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """One batch's node and time; times of the batch are shifted by ``offset_seconds``."""

    cluster: str
    node: int
    node_name: str
    time_seconds: float
    """When it was sampled."""
    first_seconds: float
    """The earliest sample in it."""
    received_seconds: float
    offset_seconds: float = 0.0
    interval_seconds: float = 10.0
    told: bool = False
    """A scheduler or an operator says so, not the node: no sign of life of the node."""

    def shifted(self, seconds: float | None) -> float | None:
        """A time of the batch on the collector's clock; never later than its arrival."""
        if seconds is None:
            return None
        return min(seconds + self.offset_seconds, self.latest_seconds)

    @property
    def earliest_seconds(self) -> float:
        """No event of the batch can be earlier."""
        return max(0.0, self.time_seconds - OLDEST_SECONDS)

    @property
    def latest_seconds(self) -> float:
        """No event of the batch can be later."""
        return self.received_seconds + SKEW_SECONDS


def clock_offset(sampled_at: float, received_at: float, sent_at: float | None) -> float:
    """What to add to a node's times, in seconds; 0 when its clock is right within two seconds.

    Measured from the time of sending; without it only a sample from the future, or from long before anything
    could have been spooled, shows a wrong clock.
    """
    offset = 0.0 if sent_at is None else received_at - sent_at
    if abs(offset) <= SKEW_SECONDS:
        offset = 0.0
    late = received_at - (sampled_at + offset)
    if late < -SKEW_SECONDS or late > OLDEST_SECONDS:
        offset = received_at - sampled_at
    return offset
