"""Since when GPUs are held without work: told to the window, also of a day ago, and anew after work."""

import numpy as np

from flopwatch_collector.compute.buckets import CODE, LEDGER_COLUMNS
from flopwatch_collector.views.held_since import HeldSince

HOUR = 3_600.0
NOON = 1_790_000_400.0 // 86_400.0 * 86_400.0 + 12 * HOUR


class Ledger:
    """Rows of one job with 8 GPUs that holds them from ``since`` on, but for the hours that it worked in."""

    def __init__(self, since: float, worked: tuple[float, ...] = ()) -> None:
        self.since, self.worked = since, worked
        self.reads: list[float] = []

    def ledger_rows(self, start: float, end: float) -> dict[str, np.ndarray]:
        self.reads.append(end - start)
        times = np.arange(np.ceil(start / 300.0) * 300.0, end, 300.0)
        busy = (times < self.since) | np.isin(times // HOUR * HOUR, self.worked)
        rows = {name: np.zeros(times.size) for name in LEDGER_COLUMNS}
        buckets = np.where(busy, CODE["STEP"], CODE["HELD_IDLE"])
        return {**rows, "ts": times, "job": np.full(times.size, 7), "bucket": buckets,
                "gpu_milliseconds": np.full(times.size, 8 * 300_000)}  # fmt: skip


def since(held: HeldSince, ledger: Ledger, now: float) -> float:
    return held.of(ledger, ledger.ledger_rows(now - 600.0, now), now)[7]


def test_a_hold_of_twenty_hours_is_told_from_its_beginning_and_searched_for_every_ten_minutes() -> None:
    ledger, held = Ledger(NOON - 20 * HOUR), HeldSince()

    begins = [since(held, ledger, NOON + minutes * 60.0) for minutes in (0, 1, 9, 10)]

    assert begins == [NOON - 20 * HOUR] * 4
    assert sum(read > 4 * HOUR for read in ledger.reads) == 2


def test_it_goes_on_to_be_told_when_it_lies_further_back_than_is_read() -> None:
    ledger, held = Ledger(NOON - 20 * HOUR), HeldSince()

    begins = {since(held, ledger, NOON + hours * HOUR) for hours in range(12)}

    assert begins == {NOON - 20 * HOUR}


def test_after_work_it_begins_anew() -> None:
    held = HeldSince()
    before = since(held, Ledger(NOON - 20 * HOUR), NOON)

    after = since(held, Ledger(NOON - 20 * HOUR, worked=(NOON,)), NOON + 2 * HOUR)
    later = since(held, Ledger(NOON - 20 * HOUR, worked=(NOON,)), NOON + 9 * HOUR)

    assert (before, after, later) == (NOON - 20 * HOUR, NOON + HOUR, NOON + HOUR)
