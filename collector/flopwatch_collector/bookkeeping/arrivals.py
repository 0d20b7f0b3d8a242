"""Which hours of the past data are flowing into: figures of them wait until it is quiet there."""

import threading
from collections.abc import Callable, Iterable

QUIET_SECONDS = 4.0
"""An hour into which nothing came for so long is taken to be whole."""
PATIENCE_SECONDS = 120.0
"""An hour into which data keep flowing has its turn after so long all the same."""
LOOK_HOURS = 2
"""Figures of an hour are made from data of so many hours before it too."""


class Arrivals:
    """When data of each hour came last, since the start. Safe for threads."""

    def __init__(self, timer: Callable[[], float]) -> None:
        self._timer = timer
        self._lock = threading.Lock()
        self._newest: dict[int, float] = {}
        self._oldest: dict[int, float] = {}

    def note(self, hours: Iterable[int]) -> None:
        """Data of these hours came now."""
        now = self._timer()
        with self._lock:
            for hour in hours:
                self._newest[hour] = now
                self._oldest.setdefault(hour, now)

    def flowing(self) -> frozenset[int]:
        """Hours that are to wait: data came lately of them or of hours just before, and not for long yet."""
        now = self._timer()
        with self._lock:
            quiet = [hour for hour, newest in self._newest.items() if now - newest >= QUIET_SECONDS]
            for hour in quiet:
                del self._newest[hour]
                del self._oldest[hour]
            waiting = [hour for hour, oldest in self._oldest.items() if now - oldest < PATIENCE_SECONDS]
        return frozenset(hour + after for hour in waiting for after in range(LOOK_HOURS + 1))

    def served(self, hours: Iterable[int]) -> None:
        """These hours were computed: what comes from now on has patience again."""
        now = self._timer()
        with self._lock:
            for hour in hours:
                if hour in self._oldest:
                    self._oldest[hour] = now
