"""The fleet's time: the wall clock, or a faster one that two processes share."""

import time
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class FleetClock:
    """``speed`` fleet seconds a second, ``start_seconds`` at ``wall_start_seconds``."""

    start_seconds: float
    wall_start_seconds: float
    speed: float = 1.0

    def now(self) -> float:
        """Epoch seconds of the fleet."""
        return self.start_seconds + (time.time() - self.wall_start_seconds) * self.speed

    def wall_seconds(self, fleet_seconds: float) -> float:
        """How long a stretch of the fleet's time takes."""
        return fleet_seconds / self.speed
