"""How often the time that is not final yet is computed again."""

from dataclasses import replace

import numpy as np
import pytest

from flopwatch_collector.bookkeeping.provisional import Provisional
from flopwatch_collector.bookkeeping.window import Computed

HOUR = 3_600.0 * 400_000
EDGE = HOUR + 300.0
NOW = HOUR + 1_130.0
BORDER = HOUR + 900.0
"""The last start of a window that ended, or began, 60 s before ``NOW`` or earlier."""


class Computing:
    """Computes a row out of so many samples, and keeps what it was asked for."""

    def __init__(self, samples: int) -> None:
        self.samples = samples
        self.spans: list[tuple[float, float]] = []

    def __call__(self, start: float, end: float) -> Computed:
        self.spans.append((start, end))
        nothing = Computed.nothing()
        ledger = {name: np.zeros(1, dtype=values.dtype) for name, values in nothing.ledger.items()}
        return replace(nothing, ledger={**ledger, "ts": np.array([start])}, samples=self.samples)


def test_a_small_fleet_is_computed_whole_every_time() -> None:
    computing = Computing(samples=20_000)
    young = Provisional()

    first = young.compute(EDGE, NOW, computing)
    again = young.compute(EDGE, NOW, computing)

    assert first is not None
    assert again is not None
    assert computing.spans == 2 * [(EDGE, BORDER), (BORDER, NOW)]


def test_the_parts_are_put_together_in_order_of_time() -> None:
    computing = Computing(samples=20_000)

    computed = Provisional().compute(EDGE, NOW, computing)

    assert computed is not None
    assert computed.ledger["ts"].tolist() == [EDGE, BORDER]
    assert computed.samples == 40_000


def test_time_that_is_all_young_is_one_part() -> None:
    computing = Computing(samples=20_000)

    Provisional().compute(BORDER, NOW, computing)

    assert computing.spans == [(BORDER, NOW)]


@pytest.mark.parametrize(
    ("seconds_later", "spans"),
    [
        # 10 s for 20,000 samples are 15 s for 30,000; what lies before has twice as long.
        (14.9, []),
        (15.0, [(BORDER, NOW + 15.0)]),
        (29.9, [(BORDER, NOW + 29.9)]),
        (30.0, [(EDGE, BORDER), (BORDER, NOW + 30.0)]),
    ],
)
def test_a_large_fleet_is_computed_the_less_often_the_larger_it_is(
    seconds_later: float, spans: list[tuple[float, float]]
) -> None:
    computing = Computing(samples=30_000)
    young = Provisional()
    young.compute(EDGE, NOW, computing)
    computing.spans.clear()

    computed = young.compute(EDGE, NOW + seconds_later, computing)

    assert (computed is None) == (not spans)
    assert computing.spans == spans


@pytest.mark.parametrize(("seconds_later", "parts"), [(29.0, 0), (30.0, 1), (119.0, 1), (120.0, 2)])
def test_nothing_waits_longer_than_its_longest_time_whatever_it_takes(
    seconds_later: float, parts: int
) -> None:
    computing = Computing(samples=9_000_000)
    young = Provisional()
    young.compute(EDGE, NOW, computing)
    computing.spans.clear()

    young.compute(EDGE, NOW + seconds_later, computing)

    assert len(computing.spans) == parts


def test_when_windows_become_final_all_is_computed_at_once() -> None:
    computing = Computing(samples=30_000)
    young = Provisional()
    young.compute(EDGE, BORDER + 359.0, computing)
    computing.spans.clear()

    young.compute(EDGE + 300.0, BORDER + 360.0, computing)

    assert computing.spans == [(EDGE + 300.0, BORDER + 300.0), (BORDER + 300.0, BORDER + 360.0)]


def test_a_clock_that_was_set_back_does_not_keep_old_figures() -> None:
    computing = Computing(samples=30_000)
    young = Provisional()
    young.compute(EDGE, NOW, computing)
    computing.spans.clear()

    young.compute(EDGE, NOW - 1.0, computing)

    assert computing.spans == [(EDGE, BORDER), (BORDER, NOW - 1.0)]
