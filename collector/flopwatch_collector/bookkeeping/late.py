"""Hours whose final windows are wrong because data arrived late: durable until they are computed again."""

import threading
from collections.abc import Iterable
from dataclasses import dataclass

from flopwatch_collector.store.port import Control

KIND = "accounting_late"
PATIENCE_TICKS = 12
"""Hours into which data keep flowing are computed again after so many ticks all the same."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LateHour:
    """An hour as it is kept: epoch seconds of its start."""

    start_seconds: float


@dataclass(kw_only=True, slots=True)
class _Marks:
    first_tick: int
    last_tick: int
    count: int = 1


class LateHours:
    """The wrong hours, as numbers of hours since the epoch. Safe for threads."""

    def __init__(self, control: Control) -> None:
        self._control = control
        self._lock = threading.Lock()
        self._tick = 1
        self._marks = {int(key): _Marks(first_tick=0, last_tick=0) for key in control.load(KIND, LateHour)}
        self._taken: dict[int, int] = {}

    def next_tick(self) -> None:
        """Time goes on: hours marked before may have grown quiet."""
        with self._lock:
            self._tick += 1

    def mark(self, hours: Iterable[int]) -> None:
        """Note that these hours are wrong; durable on return."""
        with self._lock:
            new = []
            for hour in hours:
                marks = self._marks.get(hour)
                if marks is None:
                    self._marks[hour] = _Marks(first_tick=self._tick, last_tick=self._tick)
                    new.append(hour)
                else:
                    marks.last_tick = self._tick
                    marks.count += 1
            if new:
                self._control.save(KIND, {str(hour): LateHour(start_seconds=hour * 3600.0) for hour in new})

    def ready(self) -> list[int]:
        """Hours to compute again now, newest first: quiet since the last tick, or waiting for long."""
        with self._lock:
            hours = [
                hour
                for hour, marks in self._marks.items()
                if marks.last_tick < self._tick - 1 or self._tick - marks.first_tick >= PATIENCE_TICKS
            ]
            self._taken = {hour: self._marks[hour].count for hour in hours}
            return sorted(hours, reverse=True)

    def done(self, hours: Iterable[int]) -> None:
        """These hours, as ``ready`` gave them, are computed; one marked again meanwhile stays."""
        with self._lock:
            right = [hour for hour in hours if self._marks[hour].count == self._taken[hour]]
            for hour in right:
                del self._marks[hour]
            for hour in set(hours) - set(right):
                self._marks[hour].first_tick = self._tick
            self._control.delete(KIND, [str(hour) for hour in right])

    def any(self) -> bool:
        """Whether any hour is known to be wrong."""
        with self._lock:
            return bool(self._marks)
