"""Time that is not final yet, computed again and again: its newest part often, what lies before it seldom.

How many samples a part takes decides how often: a small fleet is computed whole every time.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from flopwatch_collector.bookkeeping.window import Computed
from flopwatch_collector.compute.buckets import WINDOW_SECONDS
from flopwatch_collector.compute.ledger import joined
from flopwatch_collector.compute.rollup import ROLLUP_COLUMNS

SETTLED_SECONDS = 60.0
"""Windows that ended so long ago have nearly all of their data."""
FEW_SAMPLES = 20_000
"""A part that takes no more is computed every time: ten minutes of some hundred GPUs."""
NEWEST_SECONDS, NEWEST_LONGEST_SECONDS = 10.0, 30.0
"""So long the newest part serves for each ``FEW_SAMPLES`` that it took, and at most."""
OLDER_SECONDS, OLDER_LONGEST_SECONDS = 20.0, 120.0
Compute = Callable[[float, float], Computed]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Part:
    start: float
    end: float
    at: float
    """The time it is as of."""
    computed: Computed

    def serves(self, span: tuple[float, float], now: float, seconds: float, longest: float) -> bool:
        """Whether it need not be computed again yet."""
        samples = self.computed.samples
        if (self.start, self.end) != span or now < self.at or samples <= FEW_SAMPLES:
            return False
        return now - self.at < min(samples / FEW_SAMPLES * seconds, longest)


class Provisional:
    """The provisional time of a fleet. One thread computes."""

    def __init__(self) -> None:
        self._older: _Part | None = None
        self._newest: _Part | None = None

    def compute(self, begin: float, now: float, compute: Compute) -> Computed | None:
        """What ``begin`` to ``now`` came to; None when what was returned last still serves."""
        settled = (now - SETTLED_SECONDS) // WINDOW_SECONDS * float(WINDOW_SECONDS)
        border = max(begin, settled)
        newest = self._newest
        span = (border, np.inf)
        if newest is not None and newest.serves(span, now, NEWEST_SECONDS, NEWEST_LONGEST_SECONDS):
            return None
        older = self._before((begin, border), now, compute)
        self._newest = _Part(start=border, end=np.inf, at=now, computed=compute(border, now))
        return _together(older, self._newest.computed)

    def _before(self, span: tuple[float, float], now: float, compute: Compute) -> Computed:
        """What lies before the newest part."""
        if span[1] <= span[0]:
            self._older = None
            return Computed.nothing()
        older = self._older
        if older is None or not older.serves(span, now, OLDER_SECONDS, OLDER_LONGEST_SECONDS):
            older = self._older = _Part(start=span[0], end=span[1], at=now, computed=compute(*span))
        return older.computed


def _together(older: Computed, newest: Computed) -> Computed:
    """Two parts that follow one another."""
    return Computed(
        ledger=joined([older.ledger, newest.ledger]),
        rollup={name: np.concatenate((older.rollup[name], newest.rollup[name])) for name in ROLLUP_COLUMNS},
        timelines={**older.timelines, **newest.timelines},
        bases={**older.bases, **newest.bases},
        samples=older.samples + newest.samples,
    )
