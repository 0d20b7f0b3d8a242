"""Counters that leap further than what they count can have done: the leap is left out, and the counter goes on.

Some hardware clears only the low bits of a counter, and some firmware writes garbage once. A counter that went back
began anew; it is told as it is, since every reader of counters knows that case.
"""

import threading
from dataclasses import dataclass

MARGIN = 1.1
CACHE_SECONDS = 1.0
"""So long a driver may answer with the same figures and then with all that came meanwhile."""


@dataclass(slots=True)
class Seen:
    """One counter as it was read last, and what is left out of it."""

    value: float
    time_seconds: float
    left_out: float = 0.0


class CounterWatch:
    """Looks at counters one reading after another; safe for threads that look at counters of their own."""

    def __init__(self) -> None:
        self.resets = self.leaps = 0
        self._seen: dict[tuple[str, str], Seen] = {}
        self._lock = threading.Lock()

    def checked(self, key: tuple[str, str], value: float, now: float, most_per_second: float) -> float:
        """The counter without its leaps. ``most_per_second`` is the most that it can grow by."""
        before = self._seen.get(key)
        if before is None:
            self._seen[key] = Seen(value, now)
            return value
        elapsed = now - before.time_seconds
        growth = value - before.value
        if growth < 0:
            self._count(resets=1)
            before.left_out = 0.0
        elif elapsed >= 0 and growth > most_per_second * MARGIN * (elapsed + CACHE_SECONDS):
            self._count(leaps=1)
            before.left_out += growth
        before.value, before.time_seconds = value, now
        return value - before.left_out

    def _count(self, *, resets: int = 0, leaps: int = 0) -> None:
        with self._lock:
            self.resets += resets
            self.leaps += leaps
