"""Final windows: which are done, which are outstanding or wrong, and what was kept of them."""

import math
import threading
from collections.abc import Callable, Iterable
from zoneinfo import ZoneInfo

import numpy as np

from flopwatch_collector.bookkeeping.closing import Closing
from flopwatch_collector.bookkeeping.late import LateHours
from flopwatch_collector.bookkeeping.window import Computed
from flopwatch_collector.compute.buckets import LEDGER_COLUMNS, WINDOW_SECONDS, empty_rows
from flopwatch_collector.compute.layout import take
from flopwatch_collector.compute.ledger import joined
from flopwatch_collector.compute.rollup import ROLLUP_COLUMNS, empty_rollup
from flopwatch_collector.model import Columns
from flopwatch_collector.store.port import Control, RollupKind, Store

CHUNK_WINDOWS = 288
"""Most windows computed at once: a day's. Fewer while samples are dense."""
BACKLOG_WINDOWS = 24
"""So many windows outstanding are history that is being filled in."""
FIRST_WINDOWS = 4
NEWEST_WINDOWS = 12
MOST_SAMPLES = 1_000_000
"""A chunk that read more is halved next time."""
HOUR_SECONDS = 3600.0
HOUR_WINDOWS = 12
REACH_SECONDS = 90 * 86_400.0
"""Older time is not computed any more."""
Compute = Callable[[float, float], Computed]


class History:
    """The persisted windows. One thread works; reads may come from any."""

    def __init__(self, store: Store, control: Control, zone: ZoneInfo) -> None:
        self._store = store
        self._closing = Closing(store, zone)
        self._lock = threading.RLock()
        self._late = LateHours(control)
        self._done: set[int] | None = None
        self._begin: float | None = None
        self._outstanding = 0
        self._total = 0
        self._size = FIRST_WINDOWS
        self._cache: dict[tuple[RollupKind, float, float, tuple[int, ...] | None], Columns] = {}

    def begin_seconds(self, now: float) -> float | None:
        """Start of the first window there are data for; None without any."""
        first = self._store.first_sample_seconds()
        if first is None:
            return None
        begin = math.floor(max(first, now - REACH_SECONDS) / WINDOW_SECONDS) * float(WINDOW_SECONDS)
        with self._lock:
            self._begin = begin
        return begin

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
        self._late.next_tick()
        while self._redo(edge, begin, compute) and more():
            pass
        missing = self._missing(begin, edge)
        while missing and more():
            chunk = chunks(missing, self._size)[0]
            samples = self._compute(chunk, compute)
            self._size = self._size // 2 if samples > MOST_SAMPLES else self._size * 2
            self._size = min(max(self._size, 1), CHUNK_WINDOWS)
            missing = missing[len(chunk) :]
            self._count(begin, edge)
        self._closing.close(begin, edge, self.complete)

    def _missing(self, begin: float, edge: float) -> list[int]:
        """Final windows that are not computed, newest first."""
        done = self._known_done(begin, edge)
        first, last = int(begin) // WINDOW_SECONDS, int(edge) // WINDOW_SECONDS
        return sorted(set(range(first, last)) - done, reverse=True)

    def _count(self, begin: float, edge: float) -> None:
        first, last = int(begin) // WINDOW_SECONDS, int(edge) // WINDOW_SECONDS
        outstanding = len(self._missing(begin, edge))
        with self._lock:
            self._outstanding, self._total = outstanding, last - first

    def _compute(self, windows: list[int], compute: Compute) -> int:
        """Compute and keep these windows; returns how many samples were read."""
        computed = compute(windows[0] * float(WINDOW_SECONDS), (windows[-1] + 1) * float(WINDOW_SECONDS))
        self._put(windows, computed)
        return computed.samples

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
            stale = [key for key in self._cache if key[1] < last and key[2] > first]
            for key in stale:
                del self._cache[key]

    def _redo(self, edge: float, begin: float, compute: Compute) -> bool:
        """Compute the newest wrong hours again, at most a chunk of them; returns whether there were any."""
        hours = self._late.ready()
        if not hours:
            return False
        taken = hours[: max(1, self._size // HOUR_WINDOWS)]
        windows = [hour * HOUR_WINDOWS + part for hour in taken for part in range(HOUR_WINDOWS)]
        first, last = int(begin) // WINDOW_SECONDS, int(edge) // WINDOW_SECONDS
        own = sorted((window for window in windows if first <= window < last), reverse=True)
        for chunk in chunks(own, CHUNK_WINDOWS):
            self._compute(chunk, compute)
            self._closing.reopen(chunk[0] * float(WINDOW_SECONDS), (chunk[-1] + 1) * float(WINDOW_SECONDS))
        self._late.done(taken)
        return True

    def mark(self, start: float, end: float) -> None:
        """Have the final windows of the hours of a stretch computed again, those that are computed at all."""
        first = math.floor(start / HOUR_SECONDS)
        last = max(first, math.ceil(end / HOUR_SECONDS) - 1)
        with self._lock:
            done = self._done if self._done is not None else set()
            hours = [
                hour
                for hour in range(first, last + 1)
                if any(hour * HOUR_WINDOWS + part in done for part in range(HOUR_WINDOWS))
            ]
        self._late.mark(hours)

    def progress(self) -> float | None:
        """Share of final windows that are computed; None when hardly any is outstanding."""
        with self._lock:
            if self._outstanding < BACKLOG_WINDOWS or not self._total:
                return None
            return 1.0 - self._outstanding / self._total

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
        parts = []
        for kind, first, last in self._closing.pieces("ledger1d", "ledger5m", start, end):
            rows = self._read(kind, first, last, None)
            parts.append({name: rows[name] for name in LEDGER_COLUMNS} if "bucket" in rows else empty_rows())
        return joined(parts)

    def rollups(self, start: float, end: float, jobs: list[int] | None, *, hourly: bool) -> Columns:
        """Rollup rows kept of the interval."""
        pieces: Iterable[tuple[RollupKind, float, float]] = [("job5m", start, end)]
        if hourly:
            pieces = self._closing.pieces("job1h", "job5m", start, end)
        parts = [self._read(kind, first, last, jobs) for kind, first, last in pieces]
        tables = [part for part in parts if "job" in part] or [empty_rollup()]
        return {name: np.concatenate([part[name] for part in tables]) for name in ROLLUP_COLUMNS}

    def _read(self, kind: RollupKind, start: float, end: float, jobs: list[int] | None) -> Columns:
        start, end = (math.ceil(time / WINDOW_SECONDS) * float(WINDOW_SECONDS) for time in (start, end))
        if end <= start:
            return {}
        key = (kind, start, end, tuple(jobs) if jobs is not None else None)
        with self._lock:
            cached = self._cache.get(key)
        if cached is not None:
            return cached
        rows = self._store.windows(kind, start, end, jobs=jobs)
        if rows:
            rows = take(rows, (rows["ts"] >= start) & (rows["ts"] < end))
        with self._lock:
            if len(self._cache) > 256:
                self._cache.clear()
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
