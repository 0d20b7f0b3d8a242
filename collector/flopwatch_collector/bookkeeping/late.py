"""Hours whose final windows are wrong because data arrived late: durable until they are computed again."""

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol, cast

from flopwatch_collector.store.port import Control
from flopwatch_collector.store.sharing import SharedControl

KIND = "accounting_late"


@dataclass(frozen=True, kw_only=True, slots=True)
class LateHour:
    """An hour as it is kept: epoch seconds of its start."""

    start_seconds: float
    times: int = 0
    """How often it was marked, where several collectors mark."""


class WrongHours(Protocol):
    """The wrong hours, as numbers of hours since the epoch."""

    def mark(self, hours: Iterable[int]) -> None:
        """Note that these hours are wrong; durable on return."""
        ...

    def marks(self) -> dict[int, int]:
        """The wrong hours, newest first, and how often each was marked."""
        ...

    def done(self, computed: dict[int, int]) -> None:
        """These hours, as ``marks`` gave them, are computed; one marked again meanwhile stays."""
        ...

    def any(self) -> bool:
        """Whether any hour is known to be wrong."""
        ...


def wrong_hours(control: Control) -> WrongHours:
    """The wrong hours of one collector, or of all that share the control state."""
    if getattr(control, "shared", False):
        return SharedLateHours(cast("SharedControl", control))
    return LateHours(control)


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


class SharedLateHours:
    """The wrong hours that any of several collectors marked, read anew each time. Safe for threads."""

    def __init__(self, control: SharedControl) -> None:
        self._control = control
        self._known = bool(control.load(KIND, LateHour))

    def mark(self, hours: Iterable[int]) -> None:
        """Note that these hours are wrong; durable on return."""
        wrong = sorted(set(hours))
        if not wrong:
            return
        with self._control.exclusive():
            before = self._control.load(KIND, LateHour)
            self._control.save(
                KIND,
                {
                    str(hour): LateHour(start_seconds=hour * 3600.0, times=1 + _times(before.get(str(hour))))
                    for hour in wrong
                },
            )
        self._known = True

    def marks(self) -> dict[int, int]:
        """The wrong hours, newest first, and how often each was marked."""
        found = {int(key): hour.times for key, hour in self._control.load(KIND, LateHour).items()}
        self._known = bool(found)
        return dict(sorted(found.items(), reverse=True))

    def done(self, computed: dict[int, int]) -> None:
        """These hours, as ``marks`` gave them, are computed; one marked again meanwhile stays."""
        if not computed:
            return
        with self._control.exclusive():
            now = self._control.load(KIND, LateHour)
            right = [str(hour) for hour, times in computed.items() if _times(now.get(str(hour))) == times]
            self._control.delete(KIND, right)

    def any(self) -> bool:
        """Whether any hour was wrong when it was last looked at."""
        return self._known


def _times(hour: LateHour | None) -> int:
    return 0 if hour is None else hour.times
