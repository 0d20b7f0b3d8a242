"""The calendar days as they were handed out: provisional, frozen a day after their end, and revised after that."""

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from flopwatch_collector.compute.barely_used import barely_used_gpu_milliseconds
from flopwatch_collector.compute.buckets import label
from flopwatch_collector.compute.classes import by_bucket
from flopwatch_collector.compute.days import Border
from flopwatch_collector.model import Columns
from flopwatch_collector.store.port import Control

KIND = "ledger_day"
FREEZE_SECONDS = 86_400.0
"""So long after its end a day's figures are frozen."""
DAYS_AT_ONCE = 2
Read = Callable[[float, float], Columns]


@dataclass(frozen=True, kw_only=True, slots=True)
class DayRecord:
    """A complete day as it is kept."""

    start_seconds: float
    end_seconds: float
    gpu_milliseconds: dict[str, int] = field(default_factory=dict)
    """By bucket and reason."""
    useful_gpu_milliseconds: int = 0
    barely_used_gpu_milliseconds: int | None = None
    revision: int = 1
    """Rises when the figures of a frozen day change."""
    frozen_seconds: float | None = None
    revised_seconds: float | None = None


class DayBook:
    """All complete days, durable. One thread keeps it; records may be read from any."""

    def __init__(self, control: Control) -> None:
        self._control = control
        self._lock = threading.Lock()
        self._days = control.load(KIND, DayRecord)
        self._checked: set[str] = set()

    def record(self, day: str) -> DayRecord | None:
        """A day's record by its ISO date; None before it is complete."""
        with self._lock:
            return self._days.get(day)

    def changed(self, start: float, end: float) -> None:
        """Windows of this time were computed: days that overlap it are to be looked at again."""
        with self._lock:
            self._checked -= {
                day
                for day in self._checked
                if (known := self._days.get(day)) is None
                or (known.start_seconds < end and known.end_seconds > start)
            }

    def keep(self, now: float, complete: Iterable[Border], ledger: Read, rollups: Read) -> None:
        """Look at complete days that are new or changed, a few at once, and freeze those whose time has come."""
        new: dict[str, DayRecord] = {}
        looked = 0
        for day, start, end in complete:
            key = day.isoformat()
            known = self._days.get(key)
            if key not in self._checked and looked < DAYS_AT_ONCE:
                looked += 1
                made = _made(start, end, ledger(start, end), rollups(start, end))
                self._checked.add(key)
                known = _after(known, made, now)
            if known is not None and known.frozen_seconds is None and now >= end + FREEZE_SECONDS:
                known = replace(known, frozen_seconds=now)
            if known is not None and known != self._days.get(key):
                new[key] = known
        if new:
            self._control.save(KIND, new)
            with self._lock:
                self._days = {**self._days, **new}


def _made(start: float, end: float, rows: Columns, rollups: Columns) -> DayRecord:
    return DayRecord(
        start_seconds=start,
        end_seconds=end,
        gpu_milliseconds={label(*key): amount for key, amount in sorted(by_bucket(rows).items())},
        useful_gpu_milliseconds=int(rows["useful_gpu_milliseconds"].sum()),
        barely_used_gpu_milliseconds=barely_used_gpu_milliseconds(rollups),
    )


def _after(known: DayRecord | None, made: DayRecord, now: float) -> DayRecord:
    """The record after a look at the day's rows: a frozen day that changed has a new revision."""
    if known is None:
        return made
    same = replace(
        made,
        revision=known.revision,
        frozen_seconds=known.frozen_seconds,
        revised_seconds=known.revised_seconds,
    )
    if same == known or known.frozen_seconds is None:
        return same
    return replace(same, revision=known.revision + 1, revised_seconds=now)
