"""Closed days and hours: sums of their windows, kept so that long ranges are read quickly."""

from collections.abc import Callable, Iterator
from zoneinfo import ZoneInfo

import numpy as np

from flopwatch_collector.bookkeeping.stale import StalePieces
from flopwatch_collector.compute.days import day_of, day_start
from flopwatch_collector.compute.ledger import summed
from flopwatch_collector.compute.rollup import empty_rollup, hourly
from flopwatch_collector.model import Columns
from flopwatch_collector.store.port import Control, RollupKind, Store

HOUR = 3600.0
Complete = Callable[[float, float], bool]
Piece = tuple[RollupKind, float, float]


class Closing:
    """Closes days and hours. Used under the lock of its history, or by its one working thread."""

    def __init__(self, store: Store, control: Control, zone: ZoneInfo) -> None:
        self._store = store
        self._stale = StalePieces(control)
        self._zone = zone
        self._closed: dict[RollupKind, set[float]] | None = None

    def close(self, begin: float, edge: float, complete: Complete, more: Callable[[], bool]) -> None:
        """Write sums of the days and hours that are complete and not written yet, while there is time for ``more``."""
        closed = self._known()
        for start, end in self._days(begin, edge):
            if start not in closed["ledger1d"] and complete(start, end) and more():
                rows = self._store.windows("ledger5m", start, end)
                self._store.put_windows("ledger1d", [start], _day_rows(rows, start))
                self._written("ledger1d", [start])
        hours = np.arange(np.floor(begin / HOUR) * HOUR, edge - HOUR + 1.0, HOUR)
        open_hours = [float(hour) for hour in hours if float(hour) not in closed["job1h"]]
        for run in _runs([hour for hour in open_hours if complete(hour, hour + HOUR)]):
            if not more():
                return
            rows = self._store.windows("job5m", run[0], run[-1] + HOUR)
            self._store.put_windows("job1h", run, hourly(rows) if "job" in rows else empty_rollup())
            self._written("job1h", run)

    def _written(self, kind: RollupKind, starts: list[float]) -> None:
        self._known()[kind].update(starts)
        self._stale.done(kind, starts)

    def reopen(self, start: float, end: float) -> None:
        """Have the days and hours that overlap an interval written again, also after a restart.

        Called before their windows change: whoever dies in between has the mark.
        """
        lengths: dict[RollupKind, float] = {"ledger1d": 25 * HOUR, "job1h": HOUR}
        for kind, known in self._known().items():
            stale = {each for each in known if each < end and each + lengths[kind] > start}
            self._stale.mark(kind, stale)
            known.difference_update(stale)

    def pieces(self, coarse: RollupKind, fine: RollupKind, start: float, end: float) -> list[Piece]:
        """The interval as stretches of one kind each, coarse ones where they are written."""
        closed = sorted((self._closed or {}).get(coarse, set()))
        result: list[Piece] = []
        at = start
        for first in closed:
            last = self._end(coarse, first)
            if first < at or last > end:
                continue
            if result and result[-1][0] == coarse and result[-1][2] == first:
                result[-1] = (coarse, result[-1][1], last)
            else:
                if first > at:
                    result.append((fine, at, first))
                result.append((coarse, first, last))
            at = last
        return [*result, (fine, at, end)] if at < end else result

    def _end(self, kind: RollupKind, start: float) -> float:
        return start + HOUR if kind == "job1h" else self._next_day(start)

    def _next_day(self, start: float) -> float:
        return day_start(day_of(start + 36 * HOUR, self._zone), self._zone)

    def _days(self, begin: float, edge: float) -> Iterator[tuple[float, float]]:
        start = day_start(day_of(begin, self._zone), self._zone)
        while (end := self._next_day(start)) <= edge:
            yield start, end
            start = end

    def read(self) -> None:
        """Know what is written already."""
        self._known()

    def _known(self) -> dict[RollupKind, set[float]]:
        """Starts of what is written and right, by kind."""
        if self._closed is None:
            kinds: tuple[RollupKind, RollupKind] = ("ledger1d", "job1h")
            self._closed = {
                kind: set(self._store.done_windows(kind, 0.0, 1e12)) - self._stale.of(kind) for kind in kinds
            }
        return self._closed


def _runs(hours: list[float]) -> list[list[float]]:
    """Consecutive hours together, a day's at most: a file costs much more than the rows in it."""
    result: list[list[float]] = []
    for hour in hours:
        if result and hour == result[-1][-1] + HOUR and len(result[-1]) < 24:
            result[-1].append(hour)
        else:
            result.append([hour])
    return result


def _day_rows(rows: Columns, start: float) -> Columns:
    """One row a (node, job, bucket, reason) of a day's windows."""
    return summed({**rows, "ts": np.full(rows["ts"].size, start)} if "bucket" in rows else {})
