"""Hours whose final windows are wrong because data arrived late: durable until they are computed again."""

import threading
from collections.abc import Iterable
from dataclasses import dataclass

from flopwatch_collector.store.port import Control

KIND = "accounting_late"


@dataclass(frozen=True, kw_only=True, slots=True)
class LateHour:
    """An hour as it is kept: epoch seconds of its start."""

    start_seconds: float


class LateHours:
    """The wrong hours, as numbers of hours since the epoch. Safe for threads."""

    def __init__(self, control: Control) -> None:
        self._control = control
        self._lock = threading.Lock()
        self._marks = {int(key): 0 for key in control.load(KIND, LateHour)}

    def mark(self, hours: Iterable[int]) -> None:
        """Note that these hours are wrong; durable on return."""
        with self._lock:
            wrong = set(hours)
            new = wrong - self._marks.keys()
            for hour in wrong:
                self._marks[hour] = self._marks.get(hour, 0) + 1
            if new:
                self._control.save(KIND, {str(hour): LateHour(start_seconds=hour * 3600.0) for hour in new})

    def marks(self) -> dict[int, int]:
        """The wrong hours, newest first, and how often each was marked."""
        with self._lock:
            return dict(sorted(self._marks.items(), reverse=True))

    def done(self, computed: dict[int, int]) -> None:
        """These hours, as ``marks`` gave them, are computed; one marked again meanwhile stays."""
        with self._lock:
            right = [hour for hour, count in computed.items() if self._marks.get(hour) == count]
            for hour in right:
                del self._marks[hour]
            if right:
                self._control.delete(KIND, [str(hour) for hour in right])

    def any(self) -> bool:
        """Whether any hour is known to be wrong."""
        with self._lock:
            return bool(self._marks)
