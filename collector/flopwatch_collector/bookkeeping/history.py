"""Final windows: which are done, which are outstanding or wrong, and what was kept of them."""

import math
import threading
import time
from collections.abc import Callable, Iterable
from zoneinfo import ZoneInfo

import numpy as np

from flopwatch_collector.bookkeeping.arrivals import Arrivals
from flopwatch_collector.bookkeeping.closing import Closing
from flopwatch_collector.bookkeeping.late import wrong_hours
from flopwatch_collector.bookkeeping.window import Computed
from flopwatch_collector.compute.buckets import LEDGER_COLUMNS, WINDOW_SECONDS, empty_rows
from flopwatch_collector.compute.layout import take
from flopwatch_collector.compute.ledger import joined
from flopwatch_collector.compute.rollup import ROLLUP_COLUMNS, completed, empty_rollup
from flopwatch_collector.model import Columns
from flopwatch_collector.store.port import Control, RollupKind, Store

CHUNK_WINDOWS = 288
"""Most windows computed at once: a day's. Fewer while samples are dense."""
BACKLOG_WINDOWS = 24
"""So many windows outstanding are history that is being filled in."""
FIRST_WINDOWS = 4
NEWEST_WINDOWS = 2
"""Windows that became final so lately do not wait for data that come late."""
CHUNK_SECONDS = 0.8
"""A chunk that took longer is halved next time, one that took less than half of it is doubled."""
MOST_SAMPLES = 1_000_000
"""Likewise one that read more."""
LATE_BEFORE_SECONDS = 900.0
LATE_AFTER_SECONDS = 3600.0
"""Data tell of the time around them too: whether it was idle, silent, or between two steps."""
HOUR_SECONDS = 3600.0
HOUR_WINDOWS = 12
RAW_MARGIN_SECONDS = 6 * 3600.0
"""What is computed again needs raw data of some hours before it too."""
REACH_SECONDS = 90 * 86_400.0
"""Older time is not computed any more."""
Compute = Callable[[float, float], Computed]


class History:
    """The persisted windows. One thread works; reads may come from any."""

    def __init__(
        self, store: Store, control: Control, zone: ZoneInfo, timer: Callable[[], float] = time.monotonic
    ) -> None:
        self._store = store
        self._control = control
        self._zone = zone
        self._timer = timer
        self._capacity_since: float | None = None
        self._since: float | None = None
        self._raw_seconds = math.inf
        self._closing = Closing(store, control, zone)
        self._lock = threading.RLock()
        self._late = wrong_hours(control)
        self._arrivals = Arrivals(timer)
        self._done: set[int] | None = None
        self._begin: float | None = None
        self._outstanding = 0
        self._progress: float | None = None
        self._size = FIRST_WINDOWS
        self._puts = 0
        self._filled = 0
        self._changed: list[tuple[float, float]] = []
        self._cache: dict[tuple[RollupKind, float, float, tuple[int, ...] | None], Columns] = {}

    def begin_seconds(self, now: float) -> float | None:
        """Start of the first window there are data or capacity for; None without any."""
        known = (self._since, self._store.first_sample_seconds() or self._capacity_since)
        first = min((seconds for seconds in known if seconds is not None), default=None)
        if first is None:
            return None
        begin = math.floor(max(first, now - REACH_SECONDS) / WINDOW_SECONDS) * float(WINDOW_SECONDS)
        with self._lock:
            self._begin = begin
        return begin

    def begin_with(self, since: float | None, raw_seconds: float) -> None:
        """Account from then on, though the first sample is younger; raw data are kept for so long."""
        self._since = since
        self._raw_seconds = raw_seconds

    @property
    def raw_seconds(self) -> float:
        """How far back windows can be computed again."""
        return min(self._raw_seconds, REACH_SECONDS)

    def note_capacity(self, since: float | None) -> None:
        """There have been GPUs since then, though perhaps none was ever sampled."""
        self._capacity_since = since

    def follow(self, now: float, edge: float) -> None:
        """Know which windows another collector has computed meanwhile, without computing any."""
        self.take_over()
        begin = self.begin_seconds(now)
        if begin is not None and edge > begin:
            self._count(begin, edge)

    def take_over(self) -> None:
        """Forget what was read of the store: another collector has written it since."""
        closing = Closing(self._store, self._control, self._zone)
        closing.read()
        with self._lock:
            self._done = None
            self._cache.clear()
            self._closing = closing
            self._puts += 1
            self._filled += 1

    def advance(self, now: float, edge: float, compute: Compute) -> None:
        """Compute the windows that have just become final, so that nothing lies between them and what is younger."""
        begin = self.begin_seconds(now)
        if begin is None or edge <= begin:
            return
        missing = self._missing(begin, edge)
        recent = int(edge) // WINDOW_SECONDS - NEWEST_WINDOWS
        for chunk in chunks([window for window in missing if window >= recent], NEWEST_WINDOWS):
            self._compute(chunk, compute)
        self._count(begin, edge)

    def fill(self, now: float, edge: float, compute: Compute, more: Callable[[], bool]) -> None:
        """Compute wrong stretches again, then older windows, newest first, while there is time for ``more``."""
        begin = self.begin_seconds(now)
        if begin is None or edge <= begin:
            return
        self._drop_marks(now)
        while more() and self._redo(edge, begin, compute):
            self._filled += 1
        while more() and (waiting := self._ready(self._missing(begin, edge))):
            self._compute(chunks(waiting, self._size)[0], compute)
            self._filled += 1
        self._count(begin, edge)
        self._closing.close(begin, edge, self.complete, more)

    def _ready(self, windows: list[int]) -> list[int]:
        """Those of hours into which no data are flowing."""
        flowing = self._arrivals.flowing()
        return [window for window in windows if window // HOUR_WINDOWS not in flowing]

    def _missing(self, begin: float, edge: float) -> list[int]:
        """Final windows that are not computed, newest first."""
        done = self._known_done(begin, edge)
        first, last = int(begin) // WINDOW_SECONDS, int(edge) // WINDOW_SECONDS
        return sorted(set(range(first, last)) - done, reverse=True)

    def _count(self, begin: float, edge: float) -> None:
        """Note how far the history is: what arrives meanwhile holds the progress up, and never sets it back."""
        total = (int(edge) - int(begin)) // WINDOW_SECONDS
        outstanding = len(self._missing(begin, edge))
        with self._lock:
            self._outstanding = outstanding
            if outstanding < BACKLOG_WINDOWS:
                self._progress = None
            else:
                self._progress = max(self._progress or 0.0, 1.0 - outstanding / total)

    def _compute(self, windows: list[int], compute: Compute, *, again: bool = False) -> None:
        """Compute and keep these windows; the next chunk is larger or smaller by what this one took.

        ``again``: they are kept already; without any raw data left they stay as they are.
        """
        started = self._timer()
        self._arrivals.served({window // HOUR_WINDOWS for window in windows})
        start, end = windows[0] * float(WINDOW_SECONDS), (windows[-1] + 1) * float(WINDOW_SECONDS)
        computed = compute(start, end)
        if again and not computed.samples:
            return
        self._closing.reopen(start, end)  # first, so that nobody keeps a closed day's old sum
        self._put(windows, computed)
        took = self._timer() - started
        if took > CHUNK_SECONDS or computed.samples > MOST_SAMPLES:
            self._size = max(1, min(self._size, len(windows)) // 2)
        elif took < 0.5 * CHUNK_SECONDS and computed.samples < MOST_SAMPLES // 2:
            self._size = min(CHUNK_WINDOWS, max(self._size, 2 * len(windows)))

    def _known_done(self, begin: float, edge: float) -> set[int]:
        if self._done is None:
            known = self._store.done_windows("ledger5m", begin - REACH_SECONDS, edge)
            rolled = self._store.done_windows("job5m", begin - REACH_SECONDS, edge)
            self._done = {int(start) // WINDOW_SECONDS for start in known & rolled}
        return self._done

    def _put(self, windows: list[int], computed: Computed) -> None:
        starts = [window * float(WINDOW_SECONDS) for window in windows]
        self._store.put_windows("ledger5m", starts, computed.ledger)
        self._store.put_windows("job5m", starts, computed.rollup)
        with self._lock:
            if self._done is not None:
                self._done.update(windows)
            first, last = starts[0], starts[-1] + WINDOW_SECONDS
            self._changed.append((first, last))
            self._puts += 1
            stale = [key for key in self._cache if key[1] < last and key[2] > first]
            for key in stale:
                del self._cache[key]

    def _drop_marks(self, now: float) -> None:
        """Wrong hours whose raw data are gone, or soon will be, stay as they are: nothing better can be computed."""
        oldest = (now - self._raw_seconds + RAW_MARGIN_SECONDS) / HOUR_SECONDS
        self._late.done({hour: count for hour, count in self._late.marks().items() if hour < oldest})

    def _redo(self, edge: float, begin: float, compute: Compute) -> bool:
        """Compute the newest wrong hours that are quiet again, at most a chunk; returns whether there were any."""
        flowing = self._arrivals.flowing()
        marks = {hour: count for hour, count in self._late.marks().items() if hour not in flowing}
        taken = dict(list(marks.items())[: max(1, self._size // HOUR_WINDOWS)])
        windows = [hour * HOUR_WINDOWS + part for hour in taken for part in range(HOUR_WINDOWS)]
        first, last = int(begin) // WINDOW_SECONDS, int(edge) // WINDOW_SECONDS
        own = sorted((window for window in windows if first <= window < last), reverse=True)
        for chunk in chunks(own, max(self._size, HOUR_WINDOWS)):
            self._compute(chunk, compute, again=True)
        self._late.done(taken)
        return bool(taken)

    def arrived(self, start: float, end: float) -> None:
        """Data of a stretch before the edge came: what was computed of it and around it is wrong."""
        self._arrivals.note(_hours(start, end))
        self.mark(start - LATE_BEFORE_SECONDS, end + LATE_AFTER_SECONDS)

    def mark(self, start: float, end: float) -> None:
        """Have the final windows of the hours of a stretch computed again, those that are computed at all."""
        hours = _hours(start, end)
        with self._lock:
            done = self._done
        if done is None:  # before the first turn
            kept = self._store.done_windows(
                "ledger5m", hours[0] * HOUR_SECONDS, (hours[-1] + 1) * HOUR_SECONDS
            )
            done = {int(each) // WINDOW_SECONDS for each in kept}
        wrong = [
            hour for hour in hours if any(hour * HOUR_WINDOWS + part in done for part in range(HOUR_WINDOWS))
        ]
        self._late.mark(wrong)

    def changed(self) -> list[tuple[float, float]]:
        """Stretches whose windows were computed since the last call."""
        with self._lock:
            spans, self._changed = self._changed, []
        return spans

    def filled(self) -> int:
        """Rises whenever windows of the past, not only the newest, were computed."""
        return self._filled

    def progress(self) -> float | None:
        """Share of final windows that are computed; None when hardly any is outstanding."""
        with self._lock:
            return self._progress

    def settled(self) -> bool:
        """Whether nothing is outstanding and nothing is known to be wrong."""
        with self._lock:
            return not self._outstanding and not self._late.any()

    def complete(self, start: float, end: float) -> bool:
        """Whether all windows of an interval are computed."""
        with self._lock:
            done, begin = self._done or set(), self._begin
        if begin is None or end <= begin:
            return False
        first = int(max(start, begin)) // WINDOW_SECONDS
        return all(window in done for window in range(first, math.ceil(end / WINDOW_SECONDS)))

    def ledger(self, start: float, end: float) -> Columns:
        """Ledger rows kept of the interval: closed days inside it by day, the rest by window."""
        return joined(self.ledger_parts(start, end))

    def ledger_parts(self, start: float, end: float) -> list[Columns]:
        """The same rows as they lie, for whom joins more to them."""
        parts = []
        for kind, first, last in self._closing.pieces("ledger1d", "ledger5m", start, end):
            rows = self._read(kind, first, last, None)
            parts.append({name: rows[name] for name in LEDGER_COLUMNS} if "bucket" in rows else empty_rows())
        return parts

    def rollups(self, start: float, end: float, jobs: list[int] | None, *, hourly: bool) -> Columns:
        """Rollup rows kept of the interval."""
        pieces: Iterable[tuple[RollupKind, float, float]] = [("job5m", start, end)]
        if hourly:
            pieces = self._closing.pieces("job1h", "job5m", start, end)
        parts = [self._read(kind, first, last, jobs) for kind, first, last in pieces]
        tables = [part for part in parts if "job" in part] or [empty_rollup()]
        tables = [completed(part) for part in tables]
        return {name: np.concatenate([part[name] for part in tables]) for name in ROLLUP_COLUMNS}

    def _read(self, kind: RollupKind, start: float, end: float, jobs: list[int] | None) -> Columns:
        start, end = (math.ceil(time / WINDOW_SECONDS) * float(WINDOW_SECONDS) for time in (start, end))
        if end <= start:
            return {}
        key = (kind, start, end, tuple(jobs) if jobs is not None else None)
        with self._lock:
            cached, puts = self._cache.get(key), self._puts
        if cached is not None:
            return cached
        rows = self._store.windows(kind, start, end, jobs=jobs)
        if rows:
            rows = take(rows, (rows["ts"] >= start) & (rows["ts"] < end))
        with self._lock:
            if len(self._cache) > 256:
                self._cache.clear()
            if puts == self._puts:  # else it may have been read before what was put meanwhile
                self._cache[key] = rows
        return rows


def chunks(missing: list[int], size: int) -> list[list[int]]:
    """Consecutive windows out of descending ones, newest chunk first, each ascending and at most ``size`` long."""
    result: list[list[int]] = []
    for window in missing:
        if result and result[-1][-1] == window + 1 and len(result[-1]) < size:
            result[-1].append(window)
        else:
            result.append([window])
    return [run[::-1] for run in result]


def _hours(start: float, end: float) -> range:
    """Numbers of the hours that a stretch of time touches."""
    first = math.floor(start / HOUR_SECONDS)
    return range(first, max(first + 1, math.ceil(end / HOUR_SECONDS)))
