"""Since when jobs hold all their GPUs without work, however long ago that began."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from flopwatch_collector.compute.buckets import CODE, HELD_BUCKETS, WINDOW_SECONDS
from flopwatch_collector.compute.layout import take
from flopwatch_collector.model import Columns

LOOKBACK_SECONDS = 3 * 3_600.0
"""Read at every look."""
LONGEST_SECONDS = 23 * 3_600.0
"""Read every ten minutes, as history may still come in, for jobs that hold for longer.

Of days that lie further back the ledger may have one row each.
"""
AGAIN_SECONDS = 600.0
HELD_CODES = tuple(CODE[name] for name in sorted(HELD_BUCKETS))


class Ledger(Protocol):
    """Where ledger rows come from."""

    def ledger_rows(self, start: float, end: float) -> Columns:
        """Rows of the windows that begin in the interval."""
        ...


@dataclass(kw_only=True, slots=True)
class HeldSince:
    """Remembers the beginnings that lie before what a look reads."""

    _earlier: dict[int, float] = field(default_factory=dict)
    _searched_seconds: dict[int, float] = field(default_factory=dict)

    def of(self, ledger: Ledger, newest: Columns, now: float) -> Mapping[int, float]:
        """Jobs that hold all their GPUs without work now, by number: since which time."""
        numbers = wholly_held(newest)
        start = _hour(now - LOOKBACK_SECONDS)
        older = ledger.ledger_rows(start, now) if numbers else newest
        found = {number: begin_of_held(take(older, older["job"] == number)) for number in numbers}
        before = [number for number, begin in found.items() if begin < start + WINDOW_SECONDS]
        self._forget(before)
        self._search(ledger, before, now)
        return {number: min(begin, self._earlier.get(number, begin)) for number, begin in found.items()}

    def _forget(self, before: list[int]) -> None:
        """Jobs that worked since."""
        for number in set(self._earlier) - set(before):
            self._earlier.pop(number, None)

    def _search(self, ledger: Ledger, numbers: list[int], now: float) -> None:
        due = [
            number
            for number in numbers
            if number not in self._earlier or now - self._searched_seconds.get(number, now) >= AGAIN_SECONDS
        ]
        if not due:
            return
        rows = ledger.ledger_rows(_hour(now - LONGEST_SECONDS), now)
        for number in due:
            begin = begin_of_held(take(rows, rows["job"] == number))
            self._earlier[number] = min(begin, self._earlier.get(number, begin))
            self._searched_seconds[number] = now


def _hour(time: float) -> float:
    return time // 3_600.0 * 3_600.0


def wholly_held(rows: Columns) -> list[int]:
    """Jobs of which the newest window has nothing but held time."""
    newest = take(rows, rows["ts"] == rows["ts"].max(initial=0.0))
    held = np.isin(newest["bucket"], HELD_CODES)
    working = np.unique(newest["job"][~held])
    return [int(number) for number in np.setdiff1d(newest["job"][held], working) if number > 0]


def begin_of_held(rows: Columns) -> float:
    """When the newest unbroken stretch of nothing but held time began, within a window's precision."""
    windows = np.unique(rows["ts"])[::-1]
    begin = float(windows[0]) if windows.size else 0.0
    for window in windows.tolist():
        inside = rows["ts"] == window
        held = np.isin(rows["bucket"][inside], HELD_CODES)
        if window < begin - WINDOW_SECONDS:
            return begin
        if not held.all():
            amounts = rows["gpu_milliseconds"][inside]
            share = float(amounts[held].sum()) / float(amounts.sum())
            return float(min(begin, window + WINDOW_SECONDS * (1.0 - share)))
        begin = window
    return begin
