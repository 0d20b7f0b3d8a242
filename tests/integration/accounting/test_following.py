"""Of several collectors one accounts: the others show its figures, write none, and can go on where it ended."""

import numpy as np
import pytest
from tests.integration.accounting.books import Books, GivenFleet

from flopwatch_collector.accounting import FOLLOW_SECONDS, Accounting, Terms
from flopwatch_collector.model import Gpu, Node

NOON = 1_764_504_000.0
HOUR = 3600.0


@pytest.fixture
def books(tmp_path):
    fleet = GivenFleet(
        nodes={1: Node(number=1, cluster="c", name="n1", first_seen_seconds=NOON, last_seen_seconds=NOON)},
        gpus={1: Gpu(number=1, cluster="c", node=1, slot="a", uuid="GPU-1", name="H100", from_seconds=NOON)},
    )
    books = Books(tmp_path, fleet, [NOON])
    at = NOON + np.arange(0.0, 3 * HOUR, 10.0)
    ones = np.ones(at.size)
    books.put(gpu={"ts": at, "gpu": ones, "node": ones, "job": 0 * ones, "kernel_active_ratio": 0 * ones})
    yield books
    books.close()


class Follower:
    def __init__(self, books: Books) -> None:
        self.now = 0.0
        self.accounting = Accounting(books.store, books.control, books.fleet, Terms(timer=lambda: self.now))

    def follow(self, now: float) -> None:
        self.now += FOLLOW_SECONDS
        self.accounting.follow(now)


def gpu_milliseconds(accounting: Accounting, start: float, end: float) -> dict[int, int]:
    """GPU time by bucket."""
    rows = accounting.ledger_rows(start, end)
    return {
        int(bucket): int(rows["gpu_milliseconds"][rows["bucket"] == bucket].sum())
        for bucket in np.unique(rows["bucket"])
    }


def test_a_follower_writes_nothing_and_shows_what_the_one_on_duty_wrote(books) -> None:
    follower = Follower(books)
    follower.follow(NOON + HOUR)
    assert books.store.done_windows("ledger5m", 0, 1e11) == frozenset()
    books.settle(NOON + HOUR)
    written = books.store.done_windows("ledger5m", 0, 1e11)
    assert len(written) > 8
    follower.follow(NOON + HOUR)
    assert books.store.done_windows("ledger5m", 0, 1e11) == written
    own = gpu_milliseconds(follower.accounting, NOON, NOON + HOUR)
    assert sum(own.values()) == 3_600_000
    assert own == gpu_milliseconds(books.accounting, NOON, NOON + HOUR)


def test_a_follower_goes_on_where_the_one_on_duty_ended(books) -> None:
    follower = Follower(books)
    books.settle(NOON + HOUR)
    follower.follow(NOON + HOUR)
    before = books.store.done_windows("ledger5m", 0, 1e11)
    follower.accounting.take_over()
    for _ in range(20):
        follower.now += 10.0
        follower.accounting.tick(NOON + 2 * HOUR)
    after = books.store.done_windows("ledger5m", 0, 1e11)
    assert before < after
    # At 14:00 time from 13:49 on is provisional: the last whole window before it began at 13:40.
    assert max(after) == NOON + 100 * 60.0
    assert follower.accounting.settled()
